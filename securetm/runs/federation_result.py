"""The result of a federation as Python shows it: the table that `securetm run --json` prints, with data frames and a page.

It computes nothing: the figures are those of the run, and the weights of words those of its model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from securetm.data_frames import library
from securetm.foreign_text import html_text, printable

if TYPE_CHECKING:
    from securetm.runs.finished import FinishedRun

_WORDS = 7  # of a topic, where it is shown


class FederationResult(dict[str, Any]):
    """What `securetm run --json` prints, and the same as data frames of pandas. A frame's topics are numbered from 0."""

    @property
    def model(self) -> FinishedRun:
        """The shared model, read from the run's folder: `topics`, `transform`, `save`."""
        from securetm.runs.finished import FinishedRun

        return FinishedRun.open(Path(self["directory"]))

    @property
    def quality(self) -> dict[str, float]:
        """The figures of the shared model: npmi, diversity, held_out (perplexity)."""
        return dict(self["quality"])

    def topics_frame(self, words: int = 10) -> Any:
        """A row for each of a topic's heaviest words: topic, rank (from 1), word, weight."""
        return self.model.topics_frame(words)

    def prevalence_frame(self) -> Any:
        """Parties x topics: how much of its documents each party finds a topic takes."""
        frame = library("pandas").DataFrame.from_dict(self["prevalence"], orient="index")
        return frame.rename_axis(index="party", columns="topic")

    def documents_frame(self) -> Any:
        """For each party: its documents, those with an agreed word, and those that were left out."""
        left_out = {name: sum(one["documents"] for one in each) for name, each in self["dropped"].items()}
        rows = {name: {**each, "left_out": left_out.get(name, 0)} for name, each in self["documents"].items()}
        return library("pandas").DataFrame.from_dict(rows, orient="index").rename_axis(index="party")

    def quality_frame(self) -> Any:
        """The shared model's figures on everybody's documents and on each party's own, and those of each party's own model."""
        rows = [{"model": "shared", "party": None, **self["quality"]}]
        rows += [{"model": "shared", "party": name, **each} for name, each in self["shared_at_party"].items()]
        rows += [{"model": "alone", "party": name, **each} for name, each in self["alone"].items()]
        listed = ("chosen_by",)
        for name, each in self["adapted_at_party"].items():
            rows.append({"model": "adapted", "party": name, **{k: v for k, v in each.items() if k not in listed}})
        return library("pandas").DataFrame(rows)

    def spent_frame(self) -> Any:
        """What the run spent of each party's budget."""
        return library("pandas").DataFrame(self["spent"]).set_index("party")

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in self["quality"].items())
        topics = "".join(f"\n  {number}: {printable(' '.join(words[:_WORDS]))}" for number, words in enumerate(self["topics"]))
        return f"<{printable(f'{self._sentence()}; {figures}')}{topics}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: topics, and how much of its documents each party finds they take."""
        heads = "".join(f"<th>{html_text(name)}</th>" for name in self["prevalence"])
        rows = "".join(self._row(number, words) for number, words in enumerate(self["topics"]))
        figures = ", ".join(f"{html_text(name)} {value:.4g}" for name, value in self["quality"].items())
        head = f"<thead><tr><th></th><th style='text-align:left'>top words</th>{heads}</tr></thead>"
        return f"<p>{html_text(self._sentence())}<br>{figures}</p><table>{head}<tbody>{rows}</tbody></table>"

    def _sentence(self) -> str:
        parties, rounds = len(self["parties"]), self["rounds"]
        return f"{self['model']} of {parties} parties under {self['profile']}, {rounds} rounds, in {self['directory']}"

    def _row(self, number: int, words: list[str]) -> str:
        said = html_text(" ".join(words[:_WORDS]))
        cells = "".join(f"<td>{shares[number]:.0%}</td>" for shares in self["prevalence"].values() if number < len(shares))
        return f"<tr><th>{number}</th><td style='text-align:left'>{said}</td>{cells}</tr>"
