"""A graph behind a filter: a few kernel values reject most classes, the graph decides.

Most rows are hardly of most classes, and it takes few kernel values to see that. So
the graph of another system is asked only about the classes that a sparse multinomial
logistic regression (sparse.py) has left: a first stage that rejects, as in a cascade of
classifiers.

    at     = up to 256 support vectors, by matching pursuit of the class indicators
    parts  = 4 stratified parts of all rows
    error  = of the graph on part 0, over machines that are trained on the others
    from here on with 3,000 rows, or 400 times the classes, at most
    share  = loss times error, .015 at most: right answers that may be lost
    right  = rows that the graph answers right, as it is
    for q = 8, 16, ..., 256 while 2 q <= number of support vectors:
        fit the filter on parts 1 to 3; bound from the leads of the own class on part 0
        cost = different kernel values a row + 10 machines, the filter one; over part 0
        stop if this is the second size in turn that gains nothing, after one that did
    best q: fit without each part in turn; bound from the leads of the own class on the
        part left out, 0 where the graph is not right; then fit on all rows
    no filter if none, with this bound, costs less than the graph alone

Related work. Romdhani, Torr, Schoelkopf and Blake (2001) reject image patches after few
reduced-set vectors (Burges 1996), Viola and Jones (2001) after few features: two
classes, of which one is rare. Here many classes are rejected one by one, and what is
left goes to machines that are trained anyway. The "Cascade SVM" of Graf et al. (2004)
is a way to *train* one machine in parallel, not to ask it.

With a the answer for x, the score of class l, by which sets of classes are made
(sets.py), is

    s(x, l) = -inf                             l = a
              f_al(x), positive for a          l left by the filter           (4)
              REJECTED + lead_l(x)             l rejected
"""

from numbers import Real
from typing import Annotated

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from ..bank import Bank
from ..evaluate import KnownOutputs, NeedsBlocks
from ..graphs import DecisionGraph, costs
from ..machines import pair_index
from ..threads import one_thread
from .base import BankClassifier, Entry
from .believable import WHOLE, expect
from .dcsvm import DCSVC
from .ddag import DAGSVC, ddag_of_sets
from .sample import Sample
from .sets import SplitConformal
from .sparse import (
    DRAWN_ROWS,
    DRAWN_VECTORS,
    KERNEL_RANGE,
    filter_bank,
    lead_bound,
    leads,
    matching_pursuit,
)
from .study import PARTS as PARTS  # notebook 05 lists this module's constants
from .study import Study, stratified_parts

FILTER_SIZES = (8, 16, 32, 64, 128, 256)  # support vectors of a filter
FEWEST_ROWS = 60  # with fewer rows there is no filter: its bound would be a guess
STUDIED = 3000  # rows on which size and bound are chosen: so many, or
STUDIED_OF_A_CLASS = 400  # so many times the classes; 26 letters need them
MOST_LOST = 0.015  # share of the rows whose right answers may be lost, at most
MACHINE_COST = 10.0  # kernel values that asking one more machine is worth
REJECTED = 1000.0  # score of a rejected class, before its lead


class FilteredDAGSVC(SplitConformal, BankClassifier):
    """A graph behind a filter that rejects most classes after few kernel values.

    The filter is a multinomial logistic regression over the kernel values of a row with
    a few shared support vectors; classes far behind the best are rejected, and the
    graph of another system decides among what is left. Where no filter makes answers
    cheaper, there is none: the graph alone answers.

    Parameters
    ----------
    base : DAGSVC or DCSVC, default=None
        The system whose graph decides; None is `DAGSVC()`. Its machines are those of
        this estimator: its own C, kernel and solver do not count.
    alpha : float, default=0.05
        Chance that `predict_set` may miss the true class.
    loss : float, default=0.2
        Right answers of the graph that the filter may reject, as a share of the graph's
        errors on held-out rows: where the graph has 4 % wrong, .2 gives away up to .8 %
        of the rows, and wins some back. At most 1.5 % of the rows; where that is less
        than one held-out row, the bound stands beyond all of them.

    Attributes
    ----------
    base_ : DAGSVC or DCSVC
        The fitted system whose graph decides, over `machines_`.
    filter_support_ : ndarray of shape (n_filter,)
        The filter's support vectors, as places in `support_`; empty if there is none.
    filter_coef_ : ndarray of shape (n_classes, n_filter)
        Its coefficients.
    filter_intercept_ : ndarray of shape (n_classes,)
        Its constants.
    bound_ : float
        How far behind the best, in log odds, a class may be without being rejected;
        infinite if there is no filter.
    calibration_ : ndarray
        Sorted scores of the true classes of the calibration set; empty before
        `calibrate`.

    Notes
    -----
    The filter counts as one machine, the last column of `decision_path`, whose support
    vectors are the filter's; kernel values that it shares with machines count once.

    Examples
    --------
    >>> from dagsvm_lab import FilteredDAGSVC, load
    >>> d = load("iris", scaled=True)
    >>> est = FilteredDAGSVC(C=10).fit(d.X[::2], d.y[::2])
    >>> est = est.calibrate(d.X[1::4], d.y[1::4])
    >>> est.predict_set(d.X[[50, 70]], alpha=0.05).sum(axis=1).tolist()
    [1, 2]
    """

    base: DAGSVC | DCSVC | None = None
    alpha: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.05
    loss: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.2

    _label_kind = "hard"
    scale_pairs = False
    _saved = (
        "_base_state_",
        "filter_support_",
        "filter_coef_",
        "filter_intercept_",
        "bound_",
        "calibration_",
    )

    # ---- fitting

    def _before_training(self, sample: Sample) -> None:
        self._set_base()
        self.base_._before_training(sample)

    def _set_base(self) -> None:
        """Set `base_`, not yet fitted."""
        base = DAGSVC() if self.base is None else self.base
        if getattr(base, "scale_pairs", False):
            raise ValueError(
                "base must have scale_pairs=False: a filter needs one scale"
            )
        self.base_ = clone(base)
        self.base_.classes_ = self.classes_
        self.base_.n_features_in_ = self.n_features_in_

    def _after_training(self, sample: Sample) -> None:
        self.base_._finish_fit(sample, self.machines_)
        # what the base's graph is made of: its list, or its table
        self._base_state_ = getattr(self.base_, self.base_._saved[0])
        self.calibration_ = np.zeros(0)
        self.bound_ = np.inf
        self.filter_support_ = np.zeros(0, dtype=int)
        self.filter_coef_ = np.zeros((sample.n_classes, 0))
        self.filter_intercept_ = np.zeros(sample.n_classes)
        self.graph_ = self._make_graph()
        study = self._study(sample)
        if study is not None:
            self._choose(study)

    def _study(self, sample: Sample) -> Study | None:
        """What the filter is chosen on; None where there is nothing to choose."""
        bank = self.machines_
        counted = np.flatnonzero(sample.row_weight > 0)
        few = len(bank.support) < 2 * FILTER_SIZES[0] or len(counted) < FEWEST_ROWS
        if sample.n_classes == 2 or few:
            return None
        rng = np.random.default_rng(0)
        part = np.full(len(sample.codes), -1)  # of each row; -1: its weight is zero
        part[counted] = stratified_parts(sample.codes[counted], rng)
        most = max(STUDIED, STUDIED_OF_A_CLASS * sample.n_classes)
        rows = np.sort(rng.permutation(counted)[:most])
        drawn = rng.permutation(rows)[:DRAWN_ROWS]
        at = candidates(bank, sample, drawn, rng)
        if at is None:
            return None
        f = self._training_outputs(sample)[rows]
        right = self.graph_.labels(f) == sample.codes[rows]
        error = self._held_out_error(sample, np.flatnonzero(part == 0))
        return Study(
            K=kernel_values(bank, sample.X[rows], at),
            at=at,
            codes=sample.codes[rows],
            row_weight=sample.row_weight[rows],
            part=part[rows],
            f=f,
            right=right,
            share=min(MOST_LOST, self.loss * error),
            n_classes=sample.n_classes,
        )

    def _held_out_error(self, sample: Sample, held: np.ndarray) -> float:
        """The graph's error on rows `held`, over machines of all others."""
        known = np.ones((1, len(sample.codes)), dtype=bool)
        known[0, held] = False
        code = self._coding_matrix(sample)
        grid = self._train_grid(sample, code, [sample.kernel], [sample.C], sets=known)
        f = grid[0][0].decision(sample.X[held], n_jobs=self.n_jobs)
        return float(np.mean(self.graph_.labels(f) != sample.codes[held]))

    def _choose(self, study: Study) -> None:
        """Set the cheapest filter, if one is worth its cost."""
        # the size: fitted on parts 1 to 3, each from the weights of the one before
        held = np.flatnonzero(study.part == 0)
        known = np.flatnonzero(study.part > 0)
        best = None
        everything = np.ones((len(held), study.n_classes), dtype=bool)
        least = self._cost(study.f[held], everything, study.at[:0])
        weights = None
        for q in (q for q in FILTER_SIZES if q <= len(study.at)):
            weights = study.fitted(known, q, weights)
            lead = study.leads(held, weights)
            allowed = int(study.share * (len(held) + 1))  # rows that may be lost
            bound = np.sort(study.own(held, lead))[-1 - allowed]
            cost = self._cost(study.f[held], lead <= bound, study.at[:q])
            if cost < least:
                least = cost
                best = weights
            elif best is not None and q > 2 * (len(best) - 1):
                break  # the second size in turn that gains nothing
        if best is None:
            return
        # the bound: from leads of filters that had not seen the row
        q = len(best) - 1
        every = np.arange(len(study.codes))
        lead = study.held_out_leads(q)
        bound = lead_bound(study.own(every, lead), study.share)
        alone = self._cost(study.f, np.ones_like(lead, dtype=bool), study.at[:0])
        if self._cost(study.f, lead <= bound, study.at[:q]) >= alone:
            return
        self.bound_ = bound
        weights = study.fitted(every, q, best)
        self.filter_coef_, self.filter_intercept_ = study.white.unfolded(weights)
        self.filter_support_ = study.at[:q]

    def _cost(self, f: np.ndarray, left: np.ndarray, at: np.ndarray) -> float:
        """What a row costs behind a filter over `at`: kernel values and machines."""
        start = self.graph_.entries(left)
        _, paths, _ = self.graph_.trace(KnownOutputs(f), start, scored=False)
        if len(at):
            paths = with_last_column(paths)
        cost = costs(paths, with_filter(self.machines_.coef, at))
        machines = cost.binary_decisions.mean()
        return float(cost.kernel_evaluations.mean() + MACHINE_COST * machines)

    # ---- how it is kept

    def _check_saved(self) -> None:
        n = len(self.classes_)
        q = len(self.filter_support_)
        n_vectors = len(self.machines_.support)
        expect("filter_support_", self.filter_support_, WHOLE, (q,), 0, n_vectors - 1)
        expect("filter_coef_", self.filter_coef_, "f", (n, q))
        expect("filter_intercept_", self.filter_intercept_, "f", (n,))
        if q:
            expect("bound_", self.bound_, "f", (), 0)
        shape = (len(self.calibration_),)
        # scores may be infinite, which `expect` refuses
        expect("calibration_", np.nan_to_num(self.calibration_), "f", shape)
        self._set_base()
        self.base_.machines_ = self.machines_
        setattr(self.base_, self.base_._saved[0], self._base_state_)
        self.base_._check_saved()
        self.base_.graph_ = self.base_._make_graph()

    def _make_graph(self) -> DecisionGraph:
        self.filter_ = None
        if len(self.filter_support_):
            self.filter_ = filter_bank(
                self.machines_,
                self.filter_support_,
                self.filter_coef_,
                self.filter_intercept_,
            )
        if isinstance(self.base_, DCSVC):
            return self.base_._make_graph()
        return ddag_of_sets(self.base_._list_, len(self.classes_))

    @property
    def n_parameters_(self) -> int:
        """Platt's classifier size, the filter's coefficients included."""
        return int(self.machines_.n_parameters) + self.filter_coef_.size

    # ---- answers

    def _answer(
        self, X: np.ndarray, scored: bool = True
    ) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray | None]:
        labels, paths, scores = super()._answer(X, scored)
        if self.filter_ is None:
            return labels, paths, scores
        if scored:
            over = leads(self.filter_.decision(X, n_jobs=self.n_jobs)) - self.bound_
            rejected = over > 0
            scores[rejected] = -over[rejected]
            own = np.arange(len(labels)), labels
            nearest = np.where(rejected, over, np.inf).min(axis=1)
            alone = paths.getnnz(axis=1) == 0  # only one class was left
            scores[own] = np.where(alone, nearest, np.minimum(scores[own], nearest))
        return labels, with_last_column(paths), scores

    def _entry(self, graph: DecisionGraph, X: np.ndarray, exact: bool) -> Entry | None:
        if self.filter_ is None:
            return None
        if exact:
            asked = KnownOutputs(self.filter_.decision(X))
        else:
            asked = self.filter_.evaluator(X, every=True)
        g, slack = asked.ask_every()
        lead = leads(g)
        unsure = asked.unsure
        if slack is not None:
            # a lead is the difference of two outputs
            near = 2.0 * slack.max(axis=1, keepdims=True)
            unsure = unsure | (np.abs(lead - self.bound_) <= near).any(axis=1)
        left = lead <= self.bound_
        steps = max(1.0, left.sum(axis=1).mean() - 1.0)
        return Entry(graph.entries(left), unsure, steps)

    def _label_of_row(self, X: np.ndarray) -> int:
        if self.filter_ is None:
            return super()._label_of_row(X)
        with one_thread():
            walker = self.filter_.walker(X[0])
            g = walker.every()
            # of the last that is left; max() takes five times as long as argmax()
            ahead = g - (g[g.argmax()] - self.bound_)
            if np.abs(ahead).min() <= 2.0 * walker.largest_slack:
                raise NeedsBlocks("a class is as far behind as it may be")
            left = ahead >= 0.0
            n_left = np.count_nonzero(left)
            if n_left == 1:
                return int(left.argmax())
            graph = self.graph_
            walker = self.machines_.walker(X[0], n_left - 1.0)
            return graph.walk(walker, graph.entry(left))

    @property
    def _path_coef(self) -> sparse.csr_matrix:
        return with_filter(self.machines_.coef, self.filter_support_)

    # ---- sets of classes

    def set_scores(self, X) -> np.ndarray:
        """Score each class by how implausible it is: s(x, l) of Eq. 4.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            Minus infinity for the answer; for a class that the filter leaves, the
            output of its machine against the answer; else 1,000 and the lead.
        """
        X = self._checked_rows(X)
        answer = self._labels(X)
        n = len(self.classes_)
        left = np.ones((len(answer), n), dtype=bool)
        scores = np.zeros((len(answer), n))
        if self.filter_ is not None:
            lead = leads(self.filter_.decision(X, n_jobs=self.n_jobs))
            left = lead <= self.bound_
            scores = REJECTED + lead
        left[np.arange(len(answer)), answer] = False
        row, other = np.nonzero(left)  # each row with each class left beside its answer
        own = answer[row]
        t = pair_index(np.minimum(own, other), np.maximum(own, other), n)
        asked, place = np.unique(row, return_inverse=True)
        f = self.machines_.decision(X[asked], n_jobs=self.n_jobs)[place, t]
        scores[row, other] = np.where(own < other, f, -f)
        scores[np.arange(len(answer)), answer] = -np.inf
        return scores


def candidates(
    bank: Bank, sample: Sample, rows: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """Places in `bank.support` that filters may use, best first; None if none can."""
    some = rng.permutation(len(bank.support))[:DRAWN_VECTORS]
    K = kernel_values(bank, sample.X[rows], some)
    # beyond these kernel values say nothing, or their squares would not be numbers
    if not 1 / KERNEL_RANGE < np.abs(K).max() < KERNEL_RANGE:
        return None
    largest = max(q for q in FILTER_SIZES if 2 * q <= len(bank.support))
    return some[matching_pursuit(K, sample.codes[rows], largest)]


def kernel_values(bank: Bank, X, vectors: np.ndarray) -> np.ndarray:
    """Kernel values of rows of X with some of the bank's support vectors."""
    if bank.vectors is None:
        return X[:, bank.support[vectors]]
    return bank.kernel(X, bank.vectors[vectors])


def with_filter(coef: sparse.csr_matrix, at: np.ndarray) -> sparse.csr_matrix:
    """Coefficients of machines, and a last row that marks the vectors of a filter."""
    if not len(at):
        return coef
    ones = np.ones(len(at)), (np.zeros(len(at), dtype=int), at)
    mark = sparse.csr_matrix(ones, shape=(1, coef.shape[1]))
    return sparse.vstack([coef, mark], format="csr")


def with_last_column(paths: sparse.csr_matrix) -> sparse.csr_matrix:
    """The paths, and a last column of ones: every row met the filter."""
    met = sparse.csr_matrix(np.ones((paths.shape[0], 1), paths.dtype))
    return sparse.hstack([paths, met], format="csr")
