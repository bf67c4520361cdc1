"""The page ``benchmarks/README.md``: one text, table and figure per benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from generators import (
    adaptive,
    bayes,
    counterfactuals,
    exact,
    interruptions,
    ordinal,
    readers,
    reanalysis,
    tasks,
    training,
    zoo,
)
from generators import architecture_tables as architectures
from generators import benchmark_tables as tables
from generators import study_tables as study
from generators.results import describe_machine, read_result

HEAD = """\
# Benchmarks

<!-- Written by `python docs/generate.py` from benchmarks/results. Do not edit by hand. -->

Each benchmark compares within one run on one machine. It prints JSON with the machine and the versions, and
`--json FILE` writes it. `python foretell.py bench NAME` runs one and installs the libraries that it compares with.
Tests never assert a time.

`benchmarks/results/` holds the latest results. Check the load average first: results from a busy machine understate the
speed and can distort a ratio, because two threads of torch suffer more from other programs than one.
"""


@dataclass(frozen=True)
class Benchmark:
    """One section of the page."""

    name: str
    title: str
    text: str
    options: str
    tabulate: Callable[[tables.Result], list[str]]
    plot: Callable[[tables.Result], str]
    result: str = ""
    """Name of its file of results, where it is not the benchmark's."""

    @property
    def stored(self) -> str:
        """Name of its file of results and of its figure."""
        return self.result or self.name


BENCHMARKS = (
    Benchmark(
        "attribution",
        "Heatmap methods against other libraries",
        "Processor seconds of each method at 224 px against captum, pytorch-grad-cam and zennit with the same "
        'settings on the same batch ("batched": with Foretell\'s batch size). A speed-up of 2 means that the '
        "peer takes twice as long. Methods without a peer have none. captum's deconvnet and guided "
        "backpropagation miss the ReLU6 of mobilenet_v2; its LRP stops there and disagrees on resnet50; its "
        "DeepLIFT stops on resnet50.",
        "--threads 1",
        tables.tabulate_attribution,
        tables.plot_attribution,
    ),
    Benchmark(
        "attribution",
        "Heatmap methods on transformers against other libraries",
        "The same on two transformers. Linear layers take nearly all of their time; Foretell multiplies through "
        "oneDNN ([why](../docs/decisions/0040-fused-layers.md)). captum's integrated gradients have no certificate. "
        "lxt runs on torchvision's vision transformer alone, and needs transformers 4 (here 4.52).",
        "--threads 1 --networks swin_t,vit_b_16 "
        "--methods gradient,input_x_gradient,integrated_gradients,expected_gradients,smoothgrad,vargrad,"
        "grad_cam,attn_lrp",
        tables.tabulate_attribution,
        tables.plot_attribution,
        result="attribution_transformers",
    ),
    Benchmark(
        "attribution",
        "Heatmap methods on a GPU against other libraries",
        "The same on a GPU, in seconds. captum was about as fast where a method takes one pass and faster where it "
        "takes a few or, for occlusion, batches them. Measured before images shared passes and before a call waited "
        "for the GPU only at its end ([why](../docs/decisions/0095-passes-and-waits-on-a-gpu.md)). With `--realistic`, "
        "the same command measures 1 and 8 images with the settings of a study in at most five minutes.",
        "--threads 4 --networks resnet50,swin_t,vit_b_16",
        tables.tabulate_attribution,
        tables.plot_attribution,
        result="attribution_gpu",
    ),
    Benchmark(
        "architectures",
        "Heatmap methods on twelve architectures",
        architectures.TEXT,
        "--threads 1",
        architectures.tabulate_architectures,
        architectures.plot_architectures,
    ),
    Benchmark(
        "masked_forward",
        "The masked-forward engine",
        "How many masked images per second the engine predicts, against the network as it was loaded and "
        "against the fused program on a batch that is already masked. A whole heatmap also samples the masks "
        "and sums the results.",
        "--threads 1",
        tables.tabulate_masked_forward,
        tables.plot_masked_forward,
    ),
    Benchmark(
        "masked_forward",
        "The masked-forward engine on a GPU",
        "The same on a GPU, with TensorFloat-32 in the convolutions, as PyTorch computes them there. Masks come in "
        "blocks of 64. When this was measured, the engine waited for the logits after each, which it no longer does "
        "([why](../docs/decisions/0095-passes-and-waits-on-a-gpu.md)).",
        "",
        tables.tabulate_masked_forward,
        tables.plot_masked_forward,
        result="masked_forward_gpu",
    ),
    Benchmark(
        "uncertainty",
        "Predictions under noise",
        "The cost of a hundred passes under noise, relative to a hundred bare forward passes of as many "
        "images. It does not say whether the measures predict errors ([that is measured "
        "here](../docs/uncertainty.md)).",
        "--threads 1",
        tables.tabulate_uncertainty,
        tables.plot_uncertainty,
    ),
    Benchmark(
        "memory",
        "Memory of a heatmap",
        "Whether the peak memory follows the budget (`FORETELL_MEMORY_MIB`) while the heatmap stays the same: "
        "eight images, resnet50. The network's weights come on top.",
        "",
        tables.tabulate_memory,
        tables.plot_memory,
    ),
    Benchmark(
        "teaching",
        "Teaching sets and the build of the paper's study",
        "Teaching sets scored per second with 2,049 features, in function space and by the recipe in weight "
        "space, which must give the same probabilities. The hours are a projection of the paper's study (90 "
        "trials, resnet50) from the time of each part.",
        "--threads 1",
        tables.tabulate_teaching,
        tables.plot_teaching,
    ),
    Benchmark(
        "policies",
        "Teaching policies",
        "How well the examples of each policy teach the learner, over the trials of the demo study (`first` finds "
        "no set for some), and whether influence ranks images as training the last layer without them does.",
        "--threads 1",
        study.tabulate_policies,
        study.plot_policies,
    ),
    Benchmark(
        "models",
        "Mixed models against lme4, glmmTMB and statsmodels",
        "Processor seconds of the interaction model on the same responses. All programs reach the same log- "
        "likelihood; lme4's default search warns of a good fit. The tests, not this benchmark, decide whether "
        "the fits are right.",
        "",
        tables.tabulate_models,
        tables.plot_models,
    ),
    Benchmark(
        "recovery",
        "Recovery of known parameters",
        "Bias and coverage over 200 simulated studies of the paper's size, with Monte Carlo errors. Standard "
        "deviations of random effects are 2% to 3% too small, as maximum likelihood estimates are.",
        "",
        tables.tabulate_recovery,
        tables.plot_recovery,
    ),
    Benchmark(
        "task_recovery",
        "Recovery of each task's differences",
        "Studies of the gallery are built, simulated participants whose theory is known respond to their trials, and "
        "each of 200 studies is analysed by its own plan, with random slopes reduced where singular. The true "
        "difference of each planned contrast is computed from the theories. Half of the simulated participants read "
        "heatmaps, and these change ratings by two levels on a few images and hardly at all on others. Normal random "
        "slopes of images describe that badly: the estimated differences of `rating` are off by up to 0.16 levels, "
        "and the intervals of the largest cover 92%. Compare the estimates of such studies with the means of images.",
        "",
        tasks.tabulate,
        tasks.plot,
    ),
    Benchmark(
        "reanalysis",
        "Published responses of people, analysed again",
        "The mixed model of 10,800 responses of 360 participants to 2,331 photographs against lme4 and glmmTMB, "
        "which fit the same rows ([what the responses say, and a second study](../docs/results/reanalysis.md)). "
        "The folder holds the files that the studies' authors publish.",
        "FOLDER",
        reanalysis.tabulate,
        reanalysis.plot,
    ),
    Benchmark(
        "coverage",
        "Coverage of every reported interval",
        "The share of simulated studies with 20 participants per condition in which each 95% interval contains the "
        "true value ([details, and 5, 10 and 40 participants](../docs/statistics.md)).",
        "",
        tables.tabulate_coverage,
        tables.plot_coverage,
    ),
    Benchmark(
        "null_studies",
        "False positives of the default analysis",
        "The share of simulated studies in which a test rejects at .05, by the default analysis and by the paper's: "
        "without any effect on average, unless the row says power ([details](../docs/statistics.md)).",
        "",
        tables.tabulate_null_studies,
        tables.plot_null_studies,
    ),
    Benchmark(
        "adaptive_studies",
        "Where responses choose the trials",
        "The share of simulated studies in which a test of explanations rejects at .05, with or without an effect, "
        "by the planned models, which have the difficulty of trials, by the same models without it, by participants' "
        "thresholds (staircase) or abilities (information), and by their plain accuracy "
        "([why](../docs/decisions/0098-adaptive-choice.md)).",
        "--studies 200",
        adaptive.tabulate,
        adaptive.plot,
    ),
    Benchmark(
        "ordinal_studies",
        "Ordinal models of conditions",
        "Bias and coverage of the odds ratios of levels by condition, and how often tests reject at .05, in simulated "
        "studies of 60 participants and 12 categories that differ in the effect of conditions "
        "([details](../docs/statistics.md#ordinal-models)). Odds are proportional.",
        "--studies 150",
        ordinal.tabulate,
        ordinal.plot,
    ),
    Benchmark(
        "observers",
        "Confidence and response times",
        "Bias and coverage of meta-d' and its ratio to d', and of the parameters of response times, in simulated "
        "studies of 20 participants with 60 responses "
        "([what they are](../docs/how-to/analyse-confidence-and-times.md)). With so few responses drift rates are a "
        "little too large and sigma too small, so that their intervals cover less.",
        "--studies 300",
        tables.tabulate_recovery,
        tables.plot_recovery,
    ),
    Benchmark(
        "bayes_studies",
        "Bayesian fits",
        "Simulation-based calibration: parameters are drawn from the priors, responses from them, in studies of 32 "
        "participants and 480 responses, with half the default number of draws. "
        "The 95% intervals should contain 95% of the parameters, and the ranks of the "
        "parameters among their draws should be uniform, with a mean of 0.5 "
        "([details](../docs/statistics.md#bayesian-fits)).",
        "--studies 90",
        bayes.tabulate,
        bayes.plot,
    ),
    Benchmark(
        "power",
        "Power analysis",
        "The time of 1,000 simulated studies of the paper's size with three fits each. The tests decide "
        "whether the power is right.",
        "",
        study.tabulate_power,
        study.plot_power,
    ),
    Benchmark(
        "participants",
        "Many participants at once",
        "The time until a response is acknowledged while a fifth of the participants leave, with the page "
        "Monitor closed and open. No response is lost or stored twice, and every quota is filled. Participants "
        "are simulated on the same two cores as the server, and the browser that draws Monitor runs there too. "
        "The slow responses are those while the thousand arrive, within 20 seconds, and while others take the places "
        "of those who left.",
        "--people 200,1000",
        study.tabulate_participants,
        study.plot_participants,
    ),
    Benchmark(
        "interruptions",
        "Interrupted participants",
        "What is stored of six trials that are interrupted after three, in Foretell and in jsPsych "
        "([details](../docs/results/interruptions.md)).",
        "",
        interruptions.tabulate,
        interruptions.plot,
    ),
    Benchmark(
        "timing",
        "Response times",
        "The error of a response time in a real Chromium, from keys pressed at known delays. The mean error "
        "is one frame at 60 Hz, because the clock starts after the paint. Screens and keyboards add their own "
        "delays.",
        "",
        study.tabulate_timing,
        study.plot_timing,
    ),
    Benchmark(
        "first_start",
        "The first start",
        "Seconds until a new copy of Foretell is installed, listens, shows Home and Explore's first heatmap in a "
        "real Chromium, and has its demo study ready; and the processor seconds used until then.",
        "--install",
        study.tabulate_first_start,
        study.plot_first_start,
    ),
    Benchmark(
        "pages",
        "The researcher's pages",
        "The time until a page of a warm server shows its first useful content, and until a click that starts no work "
        "shows its result, in a real Chromium on the same two cores as the server. The reference is a page of one "
        "sentence: what Streamlit itself takes.",
        "",
        study.tabulate_pages,
        study.plot_pages,
    ),
    Benchmark(
        "faults",
        "Killing the server",
        "Whether an acknowledged response is lost or stored twice when the server is killed at random under "
        "load. A power failure is not tested: kill -9 leaves the disk's own cache intact.",
        "",
        study.tabulate_faults,
        study.plot_faults,
    ),
    Benchmark(
        "faithfulness",
        "Faithfulness of the heatmap methods",
        "The pointing game on photographs, against always pointing at the centre of the image, and the "
        "correlation between the context's share of a heatmap and its measured causal effect "
        "([details](../docs/faithfulness.md)). `FOLDER` holds the photographs.",
        "--real FOLDER --threads 1",
        study.tabulate_faithfulness,
        study.plot_faithfulness,
    ),
    Benchmark(
        "zoo",
        "Known differences between networks",
        "How well the heatmaps of each method tell the built-in network from one that differs in a known way: the area "
        "under the ROC curve, 0.5 where the difference is not shown ([details](../docs/zoo.md)).",
        "--threads 1",
        zoo.tabulate,
        zoo.plot,
    ),
    Benchmark(
        "exact",
        "Heatmaps against an exact one",
        "The relevance of pixels for the logit of `scenes:words` is known exactly. Mean rank correlation of each "
        "method's heatmap with it, over cells of 8 by 8 pixels and over pixels, with bootstrap intervals over images "
        "([details](../docs/zoo.md)).",
        "--threads 1",
        exact.tabulate,
        exact.plot,
    ),
    Benchmark(
        "training",
        "How a network learns",
        "The built-in network trained again from random weights, on six kinds of data, with what it has learned and "
        "how, by epoch; and which frequencies of a known function a network of ReLUs learns first "
        "([details](../docs/training.md)).",
        "--threads 1",
        training.tabulate,
        training.plot,
    ),
    Benchmark(
        "readers",
        "What conditions teach simulated participants",
        "The probability that a simulated participant predicts the AI who reads what a condition shows by its rule, by "
        "trial type, with 95% intervals over trials. It says what a condition offers to such a reader, and is no "
        "evidence about people: a bar, a rule or a similarity is read exactly.",
        "--threads 1",
        readers.tabulate,
        readers.plot,
    ),
    Benchmark(
        "counterfactuals",
        "Counterfactuals",
        "How many cells of an image have to be exchanged with those of another until the prediction changes, how often "
        "as many random cells do the same, and how much of the exchanged area is the object, which has 22% of a scene "
        "([how to](../docs/how-to/ask-about-a-prediction.md)). `FOLDER` holds the photographs.",
        "--real FOLDER --threads 1",
        counterfactuals.tabulate,
        counterfactuals.plot,
    ),
    Benchmark(
        "concepts",
        "Effects of concepts",
        "Whether estimates of a concept's effect find what an intervention does, on the bars of Goyal et al. "
        "(2019) ([details](../docs/concepts.md)). Mean and standard error over four random seeds.",
        "--threads 1",
        study.tabulate_concepts,
        study.plot_concepts,
    ),
)
FIGURES = "benchmarks/figures"


def render_page() -> str:
    """Render the whole page."""
    return "\n".join([HEAD, *(line for benchmark in BENCHMARKS for line in _section(benchmark))])


def _section(benchmark: Benchmark) -> list[str]:
    command = f"python -m benchmarks.{benchmark.name} {benchmark.options}".strip()
    parts = [f"## {benchmark.title}", "", benchmark.text, ""]
    parts += ["```bash", f"{command} --json benchmarks/results/{benchmark.stored}.json", "```", ""]
    record = read_result(benchmark.stored)
    if record is None:
        return [*parts, "No result yet.", ""]
    figure = f"![{benchmark.title}](figures/{benchmark.stored}.svg)"
    return [*parts, describe_machine(record), "", *benchmark.tabulate(record["result"]), "", figure, ""]


def list_figures() -> dict[str, Callable[[], str]]:
    """List the figures to draw, by path."""
    return {f"{FIGURES}/{one.stored}.svg": _drawer(one) for one in BENCHMARKS if read_result(one.stored)}


def _drawer(benchmark: Benchmark) -> Callable[[], str]:
    def draw() -> str:
        record = read_result(benchmark.stored)
        assert record is not None
        return benchmark.plot(record["result"])

    return draw
