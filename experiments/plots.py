"""One look for all plots: quiet axes, and the same colour and marker for the same thing everywhere.

The colours are those of Okabe and Ito, and darker ones from the same hues, which people who do not
see all colours tell apart; marker and dash differ as well. Files have the same bytes whenever they
show the same: no date, no random names.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.results import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, RULE = "#1c2024", "#59616b", "#e4e4df"
DOTS_PER_INCH = 160
_FONTS = ["DejaVu Sans", "Verdana", "Arial"]
_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#8a9097",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": _FONTS,
    "font.size": 9.5,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "savefig.facecolor": "white",
    # Text stays text: it can be found, and the file is a tenth.
    "svg.fonttype": "none",
    "svg.hashsalt": "pebr",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelsize": 9,
    "ytick.color": MUTED,
    "ytick.labelsize": 9,
}


@dataclass(frozen=True)
class LineStyle:
    """How a policy, a stratum or a loss is drawn.

    Attributes:
      colour: As Matplotlib takes it.
      marker: Of its points.
      dash: Of its lines.
      width: Of its lines, points.
    """

    colour: str
    marker: str
    dash: Any = "-"
    width: float = 1.8

    def line(self) -> dict[str, Any]:
        """Arguments of `Axes.plot` and `Axes.errorbar`."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.dash,
            "linewidth": self.width,
        }


_BLUE, _ORANGE, _GREEN, _PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
_SKY, _AMBER, _GREY, _VIOLET = "#56b4e9", "#b8860b", "#6b7077", "#5b4b9a"
_DASHED, _DOTTED, _MIXED, _LONG = (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)), (0, (9, 2))
_STYLES = {
    # Ours are blue, with full lines.
    "level": LineStyle(_BLUE, "o", "-", 2.6),
    "level_sample": LineStyle(_SKY, "o", _DASHED),
    "depth_law": LineStyle("#0b2f6b", "d", _LONG),
    # What everyone has.
    "top_k": LineStyle(INK, "s", _DASHED),
    "score": LineStyle(_ORANGE, "D", _DASHED),
    "gap": LineStyle(_GREEN, "^", _MIXED),
    # The paper's, and laws in its spirit.
    "cdf": LineStyle(_PINK, "v", _DASHED),
    "cdf_pdf": LineStyle(_PINK, "<", _DOTTED),
    "cdf_symmetric": LineStyle("#8e3b6d", "v", "-"),
    "corpus_law": LineStyle(_VIOLET, "P", _MIXED),
    "fitted_law": LineStyle("#9080d0", "X", _DOTTED),
    # Learnt ones, and the rest.
    "nucleus": LineStyle(_AMBER, ">", _DOTTED),
    "adapter": LineStyle("#7a6200", "p", _LONG),
    "rank_quantile": LineStyle("#006e7a", "h", _MIXED),
    "oracle": LineStyle(_GREY, "*", _DOTTED),
    # Strata: from dark to light, as from many clicks to few.
    "overall": LineStyle(INK, "o", "-", 2.2),
    "head": LineStyle("#0b4f87", "s"),
    "torso": LineStyle("#d55e00", "^"),
    "tail": LineStyle("#3aa882", "o"),
}
_OTHERS = tuple(
    LineStyle(colour, marker, dash)
    for (colour, marker), dash in zip(
        (
            (_BLUE, "o"), (_ORANGE, "s"), (_GREEN, "^"), (_PINK, "D"),
            (_AMBER, "v"), (_VIOLET, "P"), (_SKY, "X"), (_GREY, "p"),
        ),
        ("-", _DASHED, _MIXED, _DOTTED) * 2,
        strict=True,
    )
)  # fmt: skip


def line_style(name: str) -> LineStyle:
    """How a policy or a stratum is drawn; one without a style of its own gets one by its name."""
    return _STYLES.get(name) or _OTHERS[zlib.crc32(name.encode()) % len(_OTHERS)]


def line_styles(names: tuple[str, ...]) -> dict[str, LineStyle]:
    """Looks for the lines of one plot, all different while there are enough.

    Args:
      names: What is drawn, such as losses; those known to `look` keep theirs.
    """
    chosen = {name: _STYLES[name] for name in names if name in _STYLES}
    taken = {each.colour for each in chosen.values()}
    free = [each for each in _OTHERS if each.colour not in taken] or list(_OTHERS)
    others = [name for name in names if name not in _STYLES]
    return chosen | {name: free[place % len(free)] for place, name in enumerate(others)}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Matplotlib with this look, and as it was afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        # A user's own matplotlibrc must not change a figure.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def drawn(plot: Plot) -> dict[str, bytes]:
    """The files of a plot, by their ending: "svg" and "png"."""
    with style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=plot.size)
        FigureCanvasAgg(figure)
        plot.draw(figure)
        return {
            "svg": _saved(figure, "svg", metadata={"Date": None, "Creator": None}),
            "png": _saved(figure, "png", metadata={"Software": None}),
        }


def _saved(figure: Figure, ending: str, **options: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=ending, dpi=DOTS_PER_INCH, **options)
    return content.getvalue()


def thousands(axis: Any) -> None:
    """Numbers of an axis as 1,000, also where it is logarithmic."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))


def legend_below(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """One legend for all panels, below them.

    Args:
      figure: The whole.
      axes: The panel that has every line.
      columns: Names in a row.
    """
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))


def literal(text: str) -> str:
    """A text of the data, such as a query, that Matplotlib shows as it is and not as a formula."""
    return "".join(letter for letter in text if letter.isprintable()).replace("$", r"\$")
