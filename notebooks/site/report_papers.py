"""What the report says of each paper, and of all systems on the same data.

A function here is a sentence or two, computed from the record. One that says how a
claim came out names the verdicts under which it is true.
"""

import pandas as pd
from evidence import WORDS_OF_SUCCESS, Evidence

from dagsvm_lab.papers.findings import FINDINGS, shares_unsettled
from dagsvm_lab.report.prose import listed, of, said, span

SETS = {"usps": "USPS", "letter": "Letter", "covertype": "Covertype"}
FAILED = ("not reproduced", "within chance")


def standing(key: str):
    """Make the sentence that counts a paper's verdicts."""

    def counted(e: Evidence) -> str:
        right = e.count(*WORDS_OF_SUCCESS, key=key)
        wrong = e.count("not reproduced", key=key)
        chance = e.count("within chance", key=key)
        cells = e.count(*WORDS_OF_SUCCESS, key=key, cells=True)
        return (
            f"Of its {e.count(key=key)} statements {right} are reproduced or close as "
            f"written, {wrong} are not, and {chance} cannot be told from chance. Of "
            f"{e.count(key=key, cells=True)} table cells {cells} are reproduced or "
            "close."
        )

    counted.__name__ = f"standing of {key}"
    return counted


def finding(start: str):
    """Make a sentence of a finding of the front page, its headline in plain type."""

    def found(e: Evidence) -> str:
        for key, sentence in FINDINGS:
            for text in said(e.tables[key[:2]], sentence):
                if text.startswith(f"**{start}"):
                    return text.replace("**", "")
        raise LookupError(start)

    found.__name__ = f"finding {start!r}"
    return found


# -- Platt, Cristianini and Shawe-Taylor 2000


def _errors(e: Evidence) -> str:
    table = e["01/table1"].set_index(["dataset", "method"])["error_pct"]
    ours = [f"{table[name, 'dagsvm']:.1f} % on {SETS[name]}" for name in SETS]
    printed = [e.printed(f"platt-t1/{name}/dagsvm/error_pct") for name in SETS]
    return f"DAGSVM errs on {listed(ours)}; the paper prints {listed(printed)} %."


def _no_better(e: Evidence) -> str:
    for name in ("usps", "letter"):
        e.measured(f"platt-mcnemar-{name}", "reproduced")
    return (
        "As the paper says, neither one-vs-rest nor the vote is significantly better "
        "on USPS or Letter."
    )


def _fewest(e: Evidence) -> str:
    e.measured("platt-dag-fastest", "reproduced")
    table = e["01/table1"].set_index(["dataset", "method"])["kernel_evaluations"]
    ratios = [table[name, "max-wins"] / table[name, "dagsvm"] for name in SETS]
    least = e.printed("platt-evaluation-least")
    most = e.printed("platt-evaluation-most")
    return (
        "The graph needs the fewest kernel evaluations of the three methods: the vote "
        f"needs {span(ratios)} times as many, printed {least} to {most}."
    )


def _theorems(e: Evidence) -> str:
    e.measured("platt-theorem1-proof", "not reproduced")
    e.measured("platt-theorem3", "misprint")
    return (
        "Two theorems are not what their proofs give. Theorem 1 as printed is smaller "
        "than Lemma 4 and Vapnik's lemma allow (where R is 1: it depends on the "
        "units), and Theorem 3 forgets that a threshold shatters one point more."
    )


def _training(e: Evidence) -> str:
    e.measured("platt-faster-than-wins", "not reproduced")
    e.measured("platt-faster-than-wins-printed", "not reproduced")
    return (
        "The abstract says that it trains substantially faster than the vote, too. It "
        "does not, here or in the paper's own table: both train the same machines."
    )


def _other_failures(e: Evidence) -> str:
    same = e.measured("platt-order", "not reproduced")
    e.measured("platt-gaussian-best", "within chance")
    points = e["01/orders"].eval("100 * abs(gained) / test_rows")
    return (
        "The order of the list, said not to matter, matters by a significance test on "
        f"some of the three sets (it does not on {same}), but by {points.max():.2f} "
        "points at most; and the Gaussian kernel, said to be best always, is often "
        "within chance of a polynomial."
    )


def _clock(e: Evidence) -> str:
    table = e["01/evaluation"].set_index(["dataset", "method"])
    ratios = {}
    for column in ("kernel_evaluations", "batch_us", "row_us"):
        wide = table[column].unstack()
        ratios[column] = span(wide["dagsvm"] / wide["max-wins"], 2)
    return (
        f"Over the same machines it needs {ratios['kernel_evaluations']} of the vote's "
        f"kernel evaluations, {ratios['batch_us']} of its time for a batch, and "
        f"{ratios['row_us']} for rows one at a time."
    )


PLATT = (
    "The paper introduces the decision directed acyclic graph: a row meets one machine "
    "a step, each machine rules out one class, and n - 1 of n(n - 1)/2 machines give "
    "the answer. It bounds the graph's error by the margins of its machines.",
    (standing("01_platt2000"), _errors, _no_better, _fewest),
    (_training, _theorems, _other_failures),
    (_clock, finding("Forty soil"), finding("A bound that")),
    ("01_platt2000", "bound", "What Theorem 1 says, and when it says anything"),
)

# -- Yu, Rhuma, Naqvi and Chambers 2011


def _ranks(e: Evidence) -> str:
    e.measured("yu-fisher-ranks", "reproduced")
    return (
        "The distance of two classes in kernel space ranks pairs of classes as "
        "Fisher's criterion does."
    )


def _misprints(e: Evidence) -> str:
    for equation in (2, 6, 9):
        e.measured(f"yu-eq{equation}", "misprint")
    table = e["02/identity"].set_index(["equation", "form"])["difference"]
    if not (table.xs("corrected", level="form") < 1e-6).all():
        raise LookupError("the corrected equations")
    return (
        "Three equations are misprinted (2, 6 and 9); with the factors that their "
        "neighbours give, both forms of the distance agree to rounding."
    )


def _saves(e: Evidence) -> str:
    e.measured("yu-tuning-time", "reproduced")
    table = e["02/tuning_time"]
    ratio = (table["cv_seconds"] / table["dbtc_seconds"]).median()
    return (
        "Choosing the kernel width by that distance is cheaper than by "
        f"cross-validation, here by a factor of {ratio:.0f} in the median."
    )


def _cheaper(e: Evidence) -> str:
    e.measured("yu-faster-than-pairs", "reproduced", inferred=True)
    return (
        "And the graph computes fewer kernel values than the vote on every set, though "
        "it is not faster by the clock."
    )


def _not_better(e: Evidence) -> str:
    gain = e.measured("yu-better", *FAILED).split(" [")[0]
    low, high = e.measured("yu-better").split("[")[1].rstrip("]").split(", ")
    return (
        "The main claim does not hold: over redrawn splits of the six sets the "
        f"adaptive order gains {gain} points on the mean of all orders, with a 95 % "
        f"interval from {low} to {high}."
    )


def _not_optimal(e: Evidence) -> str:
    gained = e.measured("yu-optimal", "not reproduced")
    return f'Of what the best order gains ("optimal") it gets {gained}.'


def _guarantee(e: Evidence) -> str:
    least = e["02/guarantee"]["bound_pct"].min()
    return (
        "Nor does asking the most separable pair first guarantee anything: the one "
        "bound at hand, that of Platt et al., promises at most "
        f"{least:,.0f} % errors on the best of the sets."
    )


def _why_order(e: Evidence) -> str:
    rows = shares_unsettled(e.tables["02"])
    means = rows.groupby("dataset")["share"].mean()
    return (
        "There is little to gain. An order can change a row's answer only if no class "
        f"wins all its machines, and those are {span(means, 1, ' %')} of the rows of a "
        "set in the mean of its splits. The gains that the paper prints are 0 to 7 "
        "rows of one test split."
    )


def _percentile(e: Evidence) -> str:
    table = e["02/percentiles"]
    place = table["percentile"].mean()
    return (
        f"In the mean of {table['dataset'].nunique()} sets the adaptive order beats "
        f"{place:.0f} % of all orders of the list, where a random order beats 50."
    )


YU = (
    "The paper keeps the graph and chooses, for each row, the next machine to ask: the "
    "pair of classes that is farthest apart in kernel space. It reports better "
    "accuracy than any of twenty random orders.",
    (standing("02_yu2011"), _ranks, _misprints, _saves, _cheaper),
    (_not_better, _not_optimal, _guarantee),
    (_why_order, _percentile),
    ("02_yu2011", "percentiles", "Where the adaptive order stands among all orders"),
)

# -- Wang, Zheng and Zhou 2011


def _half(e: Evidence) -> str:
    e.measured("wang-fewer-than-oao", "reproduced")
    return (
        "Both trees ask less than half of the one-vs-one machines for an answer, and "
        "by construction leave no row without one."
    )


def _noise(e: Evidence) -> str:
    e.measured("wang-noise", "reproduced")
    return (
        "With flipped labels, and C and the kernel width left as chosen on clean ones, "
        "machines on posterior probabilities are more accurate."
    )


def _lines(e: Evidence) -> pd.DataFrame:
    """BTPPSVM's trees on Letter: a row a pair of labels and routing."""
    table = e["03/ablation"].query("dataset == 'letter' and pair == 'fisher'")
    return table.set_index(["labels", "routing"])


def _classes_buy(e: Evidence) -> str:
    rows = _lines(e)
    a, b = rows.loc[("hard", "samples")], rows.loc[("hard", "classes")]
    return (
        "Where a node divides whole classes, not samples, the tree's accuracy on "
        f"Letter rises from {a['accuracy_pct']:.1f} to {b['accuracy_pct']:.1f} % with "
        f"ordinary labels, at {b['mean_path']:.1f} machines a row in the place of "
        f"{a['mean_path']:.1f}."
    )


def _tree_accuracy(e: Evidence) -> str:
    tree = "wang-averages2/average/btppsvm"
    vote = "wang-averages2/average/svm_oao"
    ours = float(e.measured(tree, "not reproduced"))
    return (
        "The accuracy does not hold: in the mean of four sets the tree is right on "
        f"{ours:.1f} %, printed {float(e.printed(tree)):.1f}, while the vote has "
        f"{float(e.measured(vote)):.1f}, printed {float(e.printed(vote)):.1f}."
    )


def _vectors(e: Evidence) -> str:
    share = e.measured("wang-svs-60", "not reproduced")
    return (
        f"It stores {share} % of the vote's support vectors, not "
        f"{e.printed('wang-svs-60')}."
    )


def _paths(e: Evidence) -> str:
    e.measured("wang-growth", "assumption not met")
    return (
        "Its paths would grow as the logarithm of n if no class went to both children; "
        "as described, most do."
    )


def _noise_anew(e: Evidence) -> str:
    table = e["03/noise"].query("choice == 'anew' and noise_pct > 0")
    keys = ["dataset", "noise_pct"]
    wide = table.pivot(index=keys, columns="machine", values="accuracy_pct")
    ahead = int((wide["posterior"] > wide["ordinary"]).sum())
    return (
        "With C and the kernel width chosen anew on the noisy labels, for both kinds "
        f"of machine, posterior ones are more accurate in {ahead} of {len(wide)} cases."
    )


def _why_tree(e: Evidence) -> str:
    tree = e["03/table4"].set_index("dataset")["btppsvm"]
    return (
        "A node's machine is trained on two classes and then divides all the others, "
        "which it has not seen. What it cuts through must be carried to both sides, so "
        f"that the tree needs {tree['letter']:.0f} different machines on Letter, "
        f"printed {e.printed('wang-table4/letter/btppsvm')}."
    )


def _retrained(e: Evidence) -> str:
    ours = e.measured("wang-table4/letter/btppsvm", "fitted", inferred=True)
    right = e.measured("wang-table2/letter/btppsvm", "fitted", inferred=True)
    return (
        "Of the readings that we tried one comes near both numbers: nodes trained "
        "again on the groups of classes that they part. With it Letter has "
        f"{float(ours):.0f} machines and {float(right):.1f} % right, printed "
        f"{e.printed('wang-table2/letter/btppsvm')}; it was chosen because it fits, "
        "and is counted as fitted."
    )


WANG = (
    "The paper replaces labels by posterior probabilities estimated from nearest "
    "neighbours, and builds a binary tree that parts the most separable pair of "
    "classes at each node. It claims the vote's accuracy with fewer machines and "
    "support vectors.",
    (standing("03_wang2011"), _half, _noise, _classes_buy),
    (_tree_accuracy, _vectors, _paths, _noise_anew),
    (_why_tree, _retrained),
    (
        "03_wang2011",
        "frontier",
        "Accuracy and machines of each reading, and the paper's",
    ),
)

# -- Rathgamage Don and Iacob 2018


def _kept(e: Evidence) -> str:
    sets = e.measured("don-accuracy-kept", "reproduced")
    return (
        "At the smallest threshold (.01 %) DCSVM is nowhere less accurate than the "
        f"one-vs-one vote ({sets} sets)."
    )


def _steps(e: Evidence) -> str:
    e.measured("don-fewer-decisions", "reproduced")
    e.measured("don-before-dag", "reproduced")
    table = e["04/tables3to6_written"]
    pairs = table["classes"] * (table["classes"] - 1) / 2
    share = 100 * table["steps_0.01"] / pairs
    return (
        f"It asks {span(share, 0, ' %')} of the vote's machines, and fewer than DAGSVM "
        "in general."
    )


def _seconds(e: Evidence) -> str:
    e.measured("don-faster", "reproduced")
    table = e["04/times"]
    loop = (table["ovo"] / table["dcsvm"]).median()
    today = (table["ovo_today"] / table["dcsvm_today"]).median()
    return (
        "Machine by machine, as a program of the time would do it, it is "
        f"{loop:.1f} times as fast in the median; as one matrix product a batch, "
        f"{today:.2f} times."
    )


def _larger(e: Evidence) -> str:
    found = e.measured("don-larger-better", *FAILED)
    e.measured("don-larger-better-printed", *FAILED)
    return (
        f"That accuracy rises with the threshold does not hold ({found}): the paper's "
        "own table does not show it either."
    )


def _below(e: Evidence) -> str:
    sets = e.measured("don-steps-below", "not reproduced")
    e.measured("don-no-difference", "not reproduced")
    return (
        f"The steps stay below k - 1 on {sets}, not on all, and what is called no "
        "significant difference between methods is one on several sets."
    )


def _sum(e: Evidence) -> str:
    share = e.measured("don-72", "not reproduced")
    return (
        f"A share printed as {e.printed('don-72')} % is {share} % by the numbers that "
        "the paper divides."
    )


def _constant(e: Evidence) -> str:
    rows = of(e["04/three_sets"], "covertype").set_index("variant")
    part = rows["one-versus-one, %"]["with 44 columns of codes"]
    largest = rows["largest class, %"].iloc[0]
    if abs(part - largest) > 0.05:
        raise LookupError("covertype is more than its largest class")
    return (
        "On Covertype the paper prints one accuracy for all methods because, scaled "
        f"that way, every machine answers the largest class ({largest:.0f} %)."
    )


DON = (
    "The paper puts all classes through each machine at training time: a class that "
    "falls to one side, up to a threshold theta, is ruled out with the loser. A step "
    "then rules out several classes at once.",
    (standing("04_don2018"), _kept, _steps, _seconds),
    (_larger, _below, _sum),
    (finding("Glass is"), _constant),
    (
        "04_don2018",
        "glass_draws",
        "The printed Glass tables among 200 draws of the training rows",
    ),
)

# -- all systems on the same data


def _race(e: Evidence) -> str:
    race = e["05/race"]
    return (
        f"Notebook 05 runs {race['system'].nunique()} systems on "
        f"{race['dataset'].nunique()} sets, all with one C and kernel width a set."
    )


def _against_libsvm(e: Evidence) -> str:
    points = e["05/overall"].set_index("system")["points"]
    return (
        "LIBSVM's vote and ours differ by "
        f"{abs(points['libsvm'] - points['max-wins']):.2f} points in the mean, so that "
        "what follows is not an effect of our machines."
    )


def _graphs(e: Evidence) -> str:
    table = e["05/overall"].set_index("system")
    near = ["dagsvm", "adaptive", "dcsvm 0%"]
    points = table.loc[near, "points"]
    kernels = 100 * table.loc[near, "kernel_evaluations"]
    return (
        "DAGSVM, its adaptive order and DCSVM at threshold 0 are as accurate as the "
        f"vote ({span(points, 2)} points) at {span(kernels, 0, ' %')} of its kernel "
        "evaluations."
    )


def _worse(e: Evidence) -> str:
    points = e["05/overall"].set_index("system")["points"]
    soft = points[["posterior ovo", "posterior ovr", "btppsvm"]]
    codes = points[["ecoc dense", "ecoc sparse"]]
    return (
        f"Posterior labels cost {span(-soft)} points, error-correcting codes "
        f"{span(-codes)}, a threshold of 5 % {-points['dcsvm 5%']:.1f}."
    )


def _sentences_tested(e: Evidence) -> str:
    table = e["05/said"]
    papers_own = table[table["paper"] != "here"]
    kept = int((papers_own["holds_on"] == papers_own["of"]).sum())
    return (
        f"Of {len(papers_own)} sentences of the papers that can be tested there, "
        f"{kept} hold on every set."
    )


SYSTEMS = (
    _race,
    _against_libsvm,
    _graphs,
    _worse,
    _sentences_tested,
    finding("Most classes"),
)
OVERALL = (
    "05_head_to_head",
    "overall",
    "Accuracy against cost, relative to the one-vs-one vote",
)
