"""A sheet as the calculator would give it, without computing one."""

from __future__ import annotations

from securetm.accounting.calculator.budget_report import BudgetReport, ByAccountant
from securetm.figures import Curve, Figure, ReportTable

STATEMENT = "Against <everyone>, it is hidden, to epsilon = 1.829 per document with delta = 1e-05."
PLOT = Figure(
    "epsilon against epochs",
    "epochs",
    "epsilon per document",
    (Curve("tight & sound", ((1.0, 0.5), (5.0, 1.25), (10.0, 2.0))), Curve("looser", ((1.0, 1.0), (10.0, 2.5)))),
    (10.0, 2.0),
)
SHEET = BudgetReport(
    title="DP-SGD, 100,000 documents",
    epsilon=1.8281,
    delta=1e-5,
    unit="document",
    sampling="poisson",
    accountant="PLD",
    statement=STATEMENT,
    by_accountant=(ByAccountant("PLD", 1.8281, "tight"), ByAccountant("RDP", 2.1013, "loose")),
    true_positives=0.0292,
    settings={"documents": 100_000, "noise": 1.0, "tokens": None},
    warnings=("Something <is> wrong.",),
    notes=("A note.",),
    tables=(ReportTable("Prices", ("case", "parties", "epsilon"), (("best", 1200, 0.5), ("worst", 3, None)), "A caption."),),
    plots=(PLOT,),
    found={"steps": 1000},
)
