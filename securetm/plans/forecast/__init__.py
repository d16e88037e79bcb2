"""A forecast of how useful a model under a privacy budget will be, from public numbers alone. It reads no document.

The rule is fitted to committed results (`python -m lab reproduce usefulness-forecast`). It decides nothing about privacy.
"""

from securetm.plans.forecast.forecast_setting import ForecastSetting, setting_under, under_profile
from securetm.plans.forecast.usefulness_forecast import Band, Forecast, Verdict, forecast

__all__ = ["Band", "Forecast", "ForecastSetting", "Verdict", "forecast", "setting_under", "under_profile"]
