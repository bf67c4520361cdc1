"""The commands, one line each. Standard library only: `foretell.py` reads this table too."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command.

    Attributes
    ----------
    function
        ``module:function``; its docstring ends with an example, which the tests run.
    summary
        What it does, for the list of commands.
    opens_workspace
        Whether it may write to the workspace, which is then kept for this user alone.
    needs_workspace
        Whether it works on what is in the workspace already: a folder where no study was ever opened is refused.
    forwards
        Whether options that it does not know go on to what it starts.
    needs_development
        Whether it needs what the tests need, too.
    """

    function: str
    summary: str
    opens_workspace: bool = True
    needs_workspace: bool = False
    forwards: bool = False
    needs_development: bool = False


COMMANDS = {
    "serve": Command(
        "dashboard.cli.serve:serve", "open the pages and prepare the demo study (the default)", opens_workspace=True
    ),
    "explain": Command("dashboard.cli.explain:explain", "write heatmaps of images to files", opens_workspace=False),
    "counterfactual": Command(
        "dashboard.cli.counterfactual:counterfactual",
        "find the parts of an image that, exchanged, change the prediction",
        opens_workspace=False,
    ),
    "prototypes": Command(
        "dashboard.cli.prototypes:prototypes",
        "show the prototypes that a network compares images with",
        opens_workspace=False,
    ),
    "units": Command(
        "dashboard.cli.units:units", "find images that drive a class or unit of a network", opens_workspace=False
    ),
    "uncertainty": Command(
        "dashboard.cli.uncertainty:uncertainty", "measure the uncertainty of each prediction", opens_workspace=False
    ),
    "concepts": Command(
        "dashboard.cli.concepts:concepts", "test which human concepts a class depends on", opens_workspace=False
    ),
    "layers": Command(
        "dashboard.cli.layers:layers",
        "examine what the layers of a network represent, and its margins",
        opens_workspace=False,
    ),
    "debug": Command(
        "dashboard.cli.debug:debug",
        "find error slices, likely label errors and outliers of an image set",
        opens_workspace=False,
    ),
    "assertions": Command(
        "dashboard.cli.assertions:assertions", "run your own rules over an image set", opens_workspace=False
    ),
    "prior": Command(
        "dashboard.cli.prior:prior", "fit the learner's KFAC posterior to a training set", opens_workspace=False
    ),
    "build": Command("dashboard.cli.study:build", "build a frozen bundle of stimuli from a study file"),
    "verify": Command(
        "dashboard.cli.study:verify", "check a bundle or a database against its hashes", opens_workspace=True
    ),
    "code": Command("dashboard.cli.coding:code", "let simulated raters code the texts of simulated participants"),
    "simulate": Command(
        "dashboard.cli.study:simulate", "fill a study with simulated participants", opens_workspace=True
    ),
    "links": Command(
        "dashboard.cli.recruiting:links", "write a signed personal link for each id of a list", needs_workspace=True
    ),
    "access": Command("dashboard.cli.recruiting:access", "set who may start a study", needs_workspace=True),
    "withdraw": Command(
        "dashboard.cli.recruiting:withdraw",
        "erase a participant's responses, by their private code",
        needs_workspace=True,
    ),
    "subject-access": Command(
        "dashboard.cli.recruiting:subject_access",
        "write everything held about one participant",
        opens_workspace=True,
    ),
    "bonus": Command(
        "dashboard.cli.recruiting:bonus", "write a file of unpaid bonuses for the recruiter", needs_workspace=True
    ),
    "reconcile": Command(
        "dashboard.cli.recruiting:reconcile", "compare the recruiter's list with the responses", needs_workspace=True
    ),
    "analyze": Command(
        "dashboard.cli.analysis:analyze", "analyse a study or a CSV file, with a report", opens_workspace=True
    ),
    "glmm": Command(
        "dashboard.cli.glmm:glmm", "fit one mixed model to a CSV file, with means and contrasts", opens_workspace=False
    ),
    "importance": Command(
        "dashboard.cli.importance:importance",
        "compare heatmap methods with what participants marked",
        needs_workspace=True,
    ),
    "reliance": Command(
        "dashboard.cli.reliance:reliance",
        "measure reliance on the AI from a CSV file of decisions in two steps",
        opens_workspace=False,
    ),
    "power": Command(
        "dashboard.cli.analysis:power", "estimate the sample size from simulated studies", opens_workspace=True
    ),
    "export": Command(
        "dashboard.cli.study:export", "export the responses of a study, with a data dictionary", needs_workspace=True
    ),
    "password": Command(
        "dashboard.cli.access:password", "set the password of the researcher's pages", opens_workspace=True
    ),
    "login": Command(
        "dashboard.cli.access:login", "print a link that logs in to the researcher's pages", opens_workspace=True
    ),
    "members": Command(
        "dashboard.cli.members:members", "list, add and remove the members of a study", needs_workspace=True
    ),
    "account": Command("dashboard.cli.members:account", "print a link that sets a researcher's own password"),
    "backup": Command(
        "dashboard.cli.access:backup",
        "save responses, key, study files and bundles to a folder",
        needs_workspace=True,
    ),
    "restore": Command(
        "dashboard.cli.access:restore", "load a backup into an empty workspace and check it", opens_workspace=True
    ),
    "bench": Command(
        "dashboard.cli.bench:bench",
        "run a benchmark and print JSON",
        opens_workspace=False,
        forwards=True,
        needs_development=True,
    ),
    "doctor": Command("dashboard.cli.doctor:doctor", "check this installation", opens_workspace=False),
}
