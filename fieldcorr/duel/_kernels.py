"""Kernels of the duels: random numbers by counter, elimination, and whole simulated trials.

The engines call the first part step by step; the ``*_trial`` functions play a complete trial of one
algorithm with the same helpers, and a test holds them to the engines over all options. Random
numbers are functions of (seed, trial, step) and trials own their outputs, so results do not depend
on how trials are shared among threads.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Step t owns the counters t * STRIDE .. t * STRIDE + STRIDE - 1; the last one decides the answer.
STRIDE = 8
ANSWER = 7

SKIPPED = 4096  # entries of a mask that are counted at once

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


class Choices(NamedTuple):
    """The options of an elimination as numbers; truth values are 0 or 1."""

    log_term: float  # log(1/delta), or what stands for it
    per_arm: float  # whether each arm has a radius of its own
    everyone: float  # whether all dominated arms go, or only the worst
    keep: float  # whether comparisons with eliminated arms still count
    chain: float  # whether the arm tried last is one of the next pair
    patience: float  # answers before which nothing is eliminated
    floor: float  # the rest is the update rule, see correlation/_update_kernels.Rule
    cap: float
    pin: float


@_inner
def mix(x: np.uint64) -> np.uint64:
    """Return the splitmix64 finaliser of the 64-bit number ``x``."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@_inner
def draw(seed: int, counter: int) -> np.uint64:
    """Return the 64 random bits that belong to ``counter`` in the stream of ``seed``."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    return np.uint64(
        mix(mix(np.uint64(seed) + golden) + (np.uint64(counter) + np.uint64(1)) * golden)
    )


@_jit
def below(seed: int, counter: int, bound: int) -> np.int64:
    """Return a random integer in [0, bound), bound < 2^32."""
    high = draw(seed, counter) >> np.uint64(32)
    return np.int64((high * np.uint64(bound)) >> np.uint64(32))


@_jit
def uniform(seed: int, counter: int) -> float:
    """Return a random number in [0, 1)."""
    return np.float64(draw(seed, counter) >> np.uint64(11)) * 2.0**-53


@_jit
def trial_seed(seed: int, trial: int) -> np.int64:
    """Return the seed of one trial; an engine with this seed asks the same pairs."""
    return np.int64(draw(seed, trial) >> np.uint64(1))


@_jit
def judge(
    choices: Choices,
    wins: Float64s,
    plays: Float64s,
    background: Float64s,
    active: Bools,
    estimate: Float64s,
    radius: Float64s,
    out: Int64s,
) -> int:
    """Write P-hat and the confidence radius of every arm (Algorithm 2, lines 5-7); say who goes.

    ``background`` holds the two scalars that every arm carries on top of wins and plays. A common
    radius is c* = c(n*), n* the least count among the active arms. The arms to eliminate go into
    ``out``, and their number is returned.

    An arm is dominated when its upper bound is at most the largest lower bound (Algorithm 3, lines
    7-8). Where only the worst one goes, as printed, that is argmin P-hat under a common radius.
    """
    least = np.inf
    for k in range(wins.size):
        if active[k]:
            n = plays[k] + background[1]
            least = n if n < least else least
    common = math.sqrt(choices.log_term / least) if least > 0.0 else 1.0
    floor = -np.inf
    for k in range(wins.size):
        n = plays[k] + background[1]
        known = n > 0.0
        safe = n if known else 1.0
        own = math.sqrt(choices.log_term / safe) if known else 1.0
        estimate[k] = (wins[k] + background[0]) / safe if known else 0.5
        radius[k] = own if choices.per_arm != 0.0 else common
    for k in range(active.size):
        if active[k]:
            lower = estimate[k] - radius[k]
            floor = lower if lower > floor else floor
    count = 0
    worst = np.inf
    for k in range(active.size):
        if active[k] and estimate[k] + radius[k] <= floor:
            key = estimate[k] + radius[k] if choices.per_arm != 0.0 else estimate[k]
            if choices.everyone != 0.0:
                out[count] = k
                count += 1
            elif key < worst:
                worst = key
                out[0] = k
                count = 1
    return count


@_jit
def rank(mask: Bools, arm: int) -> int:
    """Return how many entries of ``mask`` before ``arm`` are true."""
    before = 0
    for k in range(arm):
        before += mask[k]
    return before


@_jit
def nth(mask: Bools, rank: int) -> int:
    """Return the index of the true entry of ``mask`` that has ``rank`` true ones before it."""
    first = 0
    while first + SKIPPED <= mask.size:  # whole pieces at once: a count runs in vector registers
        here = 0
        for k in range(first, first + SKIPPED):
            here += mask[k]
        if here > rank:
            break
        rank -= here
        first += SKIPPED
    for k in range(first, mask.size):
        if mask[k]:
            if rank == 0:
                return k
            rank -= 1
    return -1


@_jit
def least_played(plays: Float64s, active: Bools, out: Int64s) -> int:
    """List the active arms with the fewest plays in ``out``; return their number."""
    least = np.inf
    count = 0
    for k in range(plays.size):
        if active[k] and plays[k] <= least:
            count = count if plays[k] == least else 0
            least = plays[k]
            out[count] = k
            count += 1
    return count


@_jit
def ucb1_arm(
    wins: Float64s, plays: Float64s, allowed: Bools, log_term: float, seed: int, counter: int
) -> int:
    """Return the arm of one UCB1 player: a random unplayed one, else the largest index."""
    fresh = 0
    for k in range(wins.size):
        fresh += allowed[k] and plays[k] == 0.0
    if fresh > 0:
        rank = below(seed, counter, fresh)
        for k in range(wins.size):
            if allowed[k] and plays[k] == 0.0:
                if rank == 0:
                    return k
                rank -= 1
    chosen = -1
    top = -np.inf
    for k in range(wins.size):
        if allowed[k]:
            value = wins[k] / plays[k] + math.sqrt(log_term / plays[k])
            if value > top:
                top = value
                chosen = k
    return chosen


# -- whole trials ---------------------------------------------------------------------------------


@_jit
def regret(utility: Float64s, best: int, arm: int, noise: float) -> float:
    """Return epsilon(b1, arm) = P(b1 beats arm) - 1/2 for Gaussian noise on either value."""
    return 0.5 * math.erf((utility[best] - utility[arm]) / (2.0 * noise))


@_jit
def pair_regret(utility: Float64s, best: int, i: int, j: int, noise: float) -> float:
    """Return the mean regret of the two arms of a duel."""
    return 0.5 * float(regret(utility, best, i, noise) + regret(utility, best, j, noise))


@_jit
def left_wins(utility: Float64s, left: int, right: int, noise: float, seed: int, step: int) -> bool:
    """Return whether the noisy value of ``left`` exceeds that of ``right`` at this step."""
    chance = 0.5 * math.erfc((utility[right] - utility[left]) / (2.0 * noise))
    return bool(uniform(seed, step * STRIDE + ANSWER) < chance)


@_inner
def first_ranked(estimate: Float64s, count: Float64s, active: Bools) -> int:
    """Return the active arm with the largest estimate, then count, then the lowest number."""
    chosen = nth(active, 0)
    for k in range(estimate.size):
        if active[k] and (
            estimate[k] > estimate[chosen]
            or (estimate[k] == estimate[chosen] and count[k] > count[chosen])
        ):
            chosen = k
    return int(chosen)


@_inner
def _place_of(arm: int, arms: Int64s, left: int) -> int:
    """Return where an arm stands among the first ``left`` of ``arms``, ascending; -1 if nowhere."""
    low, high = 0, left
    while low < high:
        middle = (low + high) // 2
        if arms[middle] < arm:
            low = middle + 1
        else:
            high = middle
    return low if low < left and arms[low] == arm else -1


@_inner
def _correlate(
    choices: Choices,
    r: Float32s,
    logs: Float64s,
    arms: Int64s,
    left: int,
    winner: int,
    loser: int,
    wins: Float64s,
    plays: Float64s,
) -> None:
    """Add the CorrUpdate of one duel for every arm left (Eqs. 5-6), bit for bit as the engines do.

    ``winner`` and ``loser`` are places in ``arms``. ``logs`` (K, K) holds the logarithms of r~,
    above 0 where the rule leaves an arm out: looking them up is 5 times faster than computing two
    per arm.
    """
    floor, cap = choices.floor, choices.cap
    i, j = arms[winner], arms[loser]
    near, far, log_near, log_far = r[i], r[j], logs[i], logs[j]
    pair = min(1.0, max(floor, float(near[j])))
    denominator = 1.0 + pair if pair > -1.0 else np.inf
    own = wins[winner], plays[winner], wins[loser], plays[loser]
    for n in range(left):
        k = arms[n]
        x, y = float(near[k]), float(far[k])
        x = x if x > floor else floor
        y = y if y > floor else floor
        x = x if x < 1.0 else 1.0
        y = y if y < 1.0 else 1.0
        tau = (x + y) / denominator
        tau = tau if tau < cap else cap
        tau = tau if (log_near[k] <= 0.0) & (log_far[k] <= 0.0) else 0.0
        total = log_near[k] + log_far[k]
        share = log_far[k] / (total if total < 0.0 else 1.0)
        wins[n] += tau * (share if total < 0.0 else 0.5)
        plays[n] += tau
    if choices.pin != 0.0:
        wins[winner], plays[winner] = own[0] + 1.0, own[1] + 1.0
        wins[loser], plays[loser] = own[2], own[3] + 1.0


@_inner
def _remove(
    gone: Int64s, count: int, arms: Int64s, left: int, wins: Float64s, plays: Float64s
) -> int:
    """Close the gaps at the ``count`` ascending places in ``gone``; return how many arms stay."""
    kept = 0
    for n in range(left):
        if n - kept < count and gone[n - kept] == n:
            continue
        arms[kept], wins[kept], plays[kept] = arms[n], wins[n], plays[n]
        kept += 1
    return kept


@_inner
def _forget(
    choices: Choices,
    r: Float32s,
    logs: Float64s,
    arms: Int64s,
    left: int,
    duels: Int64s,
    count: int,
    wins: Float64s,
    plays: Float64s,
) -> int:
    """Delete the comparisons with eliminated arms (Algorithm 3, line 9); return how many stay."""
    kept = 0
    for s in range(count):
        winner, loser = duels[s, 0], duels[s, 1]
        if _place_of(winner, arms, left) >= 0 and _place_of(loser, arms, left) >= 0:
            duels[kept, 0], duels[kept, 1] = winner, loser
            kept += 1
    if kept < count:
        for n in range(left):
            wins[n] = 0.0
            plays[n] = 0.0
        for s in range(kept):
            winner, loser = duels[s, 0], duels[s, 1]
            places = _place_of(winner, arms, left), _place_of(loser, arms, left)
            _correlate(choices, r, logs, arms, left, places[0], places[1], wins, plays)
    return kept


@_jit
def corrduel_trial(
    choices: Choices,
    r: Float32s,
    logs: Float64s,
    utility: Float64s,
    seed: int,
    noise: float,
    eps: Float32s,
    result: Float64s,
) -> None:
    """Play one trial of CorrDuel: write the stepwise regret into ``eps`` (T,).

    Nothing brings an arm back in a trial, so wins and plays are kept for the arms that are left
    alone. ``result`` (3,) gets the regret of the returned arm, the number of arms left, and
    whether the best one is among them.
    """
    left = utility.size
    best = np.argmax(utility)
    arms, everyone = np.arange(left), np.ones(left, dtype=np.bool_)
    wins, plays, background = np.zeros(left), np.zeros(left), np.zeros(2)
    estimate, radius = np.empty(left), np.empty(left)
    out = np.empty(left, dtype=np.int64)
    duels = np.zeros((eps.size, 2), dtype=np.int64)
    compared, previous = 0, -1
    for t in range(eps.size):
        if left == 1:
            eps[t] = regret(utility, best, arms[0], noise)
            continue
        i = _place_of(previous, arms, left) if choices.chain != 0.0 else -1
        if i < 0:
            i = below(seed, t * STRIDE, left)
        j = below(seed, t * STRIDE + 1, left - 1)
        j = j + 1 if j >= i else j
        previous = arms[j]
        eps[t] = pair_regret(utility, best, arms[i], arms[j], noise)
        if not left_wins(utility, arms[i], arms[j], noise, seed, t):
            i, j = j, i
        duels[compared, 0], duels[compared, 1] = arms[i], arms[j]
        compared += 1
        _correlate(choices, r, logs, arms, left, i, j, wins, plays)
        if t + 1 < choices.patience:
            continue
        tally = wins[:left], plays[:left]
        count = judge(choices, *tally, background, everyone[:left], estimate, radius, out)
        if count > 0:
            left = _remove(out, count, arms, left, wins, plays)
            if choices.keep == 0.0:
                compared = _forget(choices, r, logs, arms, left, duels, compared, wins, plays)
    wins, plays, everyone = wins[:left], plays[:left], everyone[:left]
    judge(choices, wins, plays, background, everyone, estimate, radius, out)
    chosen = arms[first_ranked(estimate[:left], plays, everyone)]
    result[0], result[1] = regret(utility, best, chosen, noise), left
    result[2] = _place_of(best, arms, left) >= 0


@_jit
def beat_the_mean_trial(
    choices: Choices, utility: Float64s, seed: int, noise: float, eps: Float32s, result: Float64s
) -> None:
    """Play one trial of Beat-the-Mean: a common radius, the worst arm goes."""
    arms = utility.size
    best = np.argmax(utility)
    wins, plays, background = np.zeros(arms), np.zeros(arms), np.zeros(2)
    estimate, radius = np.empty(arms), np.empty(arms)
    active = np.ones(arms, dtype=np.bool_)
    out = np.empty(arms, dtype=np.int64)
    duels = np.zeros((eps.size, 2), dtype=np.int64)
    won = np.zeros(eps.size)
    left = arms
    for t in range(eps.size):
        if left == 1:
            eps[t] = regret(utility, best, nth(active, 0), noise)
            continue
        i = out[below(seed, t * STRIDE, least_played(plays, active, out))]
        active[i] = False
        j = nth(active, below(seed, t * STRIDE + 1, left - 1))
        active[i] = True
        eps[t] = pair_regret(utility, best, i, j, noise)
        duels[t, 0], duels[t, 1] = i, j
        won[t] = 1.0 if left_wins(utility, i, j, noise, seed, t) else 0.0
        wins[i] += won[t]
        plays[i] += 1.0
        # n* <= n_i, and intervals around 0 and 1 overlap while 2 c(n*) > 1: most steps end here.
        if plays[i] < 4.0 * choices.log_term:
            continue
        if judge(choices, wins, plays, background, active, estimate, radius, out) == 1:
            active[out[0]] = False
            left -= 1
            for s in range(t + 1):
                if duels[s, 1] == out[0]:
                    wins[duels[s, 0]] -= won[s]
                    plays[duels[s, 0]] -= 1.0
                    duels[s, 1] = -1
    judge(choices, wins, plays, background, active, estimate, radius, out)
    chosen = first_ranked(estimate, plays, active)
    result[0], result[1], result[2] = regret(utility, best, chosen, noise), left, active[best]


@_inner
def rucb_candidate(
    pairs: Float64s, count: int, bonus: float, favourite: int, arms: int, seed: int, step: int
) -> tuple[int, int]:
    """Return (c, favourite): the optimistic champion of RUCB, lines 3-9 of its listing.

    Row p of ``pairs`` holds two arms and their wins over each other. A pair never compared has
    u = 2, so only compared pairs can keep an arm out of the set C of possible champions.
    """
    possible = np.ones(arms, dtype=np.bool_)
    size = arms
    for p in range(count):
        n = pairs[p, 2] + pairs[p, 3]
        extra = math.sqrt(bonus / n)
        for side in range(2):
            arm = np.int64(pairs[p, side])
            if pairs[p, 2 + side] / n + extra < 0.5:
                size -= possible[arm]
                possible[arm] = False
    if favourite >= 0 and not possible[favourite]:
        favourite = -1
    if size == 0:
        return below(seed, step * STRIDE, arms), favourite
    if size == 1:
        chosen = nth(possible, 0)
        return chosen, chosen
    if favourite >= 0:
        if uniform(seed, step * STRIDE + 1) < 0.5:
            return favourite, favourite
        possible[favourite] = False
        size -= 1
    return nth(possible, below(seed, step * STRIDE, size)), favourite


@_inner
def rucb_rival(
    pairs: Float64s, count: int, bonus: float, champion: int, arms: int, seed: int, step: int
) -> int:
    """Return the arm d != c with the largest u_dc, ties at random (line 10 of RUCB)."""
    value = np.empty(arms)
    for k in range(arms):
        value[k] = 2.0
    value[champion] = -1.0
    for p in range(count):
        n = pairs[p, 2] + pairs[p, 3]
        extra = math.sqrt(bonus / n)
        for side in range(2):
            if pairs[p, 1 - side] == champion:
                value[np.int64(pairs[p, side])] = pairs[p, 2 + side] / n + extra
    top = -1.0
    size = 0
    for k in range(arms):
        if value[k] > top:
            top = value[k]
            size = 0
        size += value[k] == top
    rank = below(seed, step * STRIDE + 2, size)
    for k in range(arms):
        if value[k] == top:
            if rank == 0:
                return k
            rank -= 1
    return -1


@_jit
def rucb_trial(
    alpha: float, utility: Float64s, seed: int, noise: float, eps: Float32s, result: Float64s
) -> None:
    """Play one trial of RUCB on the list of compared pairs: O(K + t) per step, not O(K^2)."""
    arms = utility.size
    best = np.argmax(utility)
    pairs = np.zeros((eps.size, 4))
    count = np.int64(0)  # not the literal 0, for which numba compiles everything twice
    favourite = np.int64(-1)
    for t in range(eps.size):
        bonus = alpha * math.log(t + 1.0)
        c, favourite = rucb_candidate(pairs, count, bonus, favourite, arms, seed, t)
        d = rucb_rival(pairs, count, bonus, c, arms, seed, t)
        eps[t] = pair_regret(utility, best, c, d, noise)
        winner, loser = (c, d) if left_wins(utility, c, d, noise, seed, t) else (d, c)
        p = 0
        while p < count and not (
            (pairs[p, 0] == winner and pairs[p, 1] == loser)
            or (pairs[p, 0] == loser and pairs[p, 1] == winner)
        ):
            p += 1
        if p == count:
            pairs[p, 0], pairs[p, 1] = winner, loser
            count += 1
        pairs[p, 2 if pairs[p, 0] == winner else 3] += 1.0
    score, plays = np.zeros(arms), np.zeros(arms)
    for p in range(count):
        for side in range(2):
            arm, ahead = np.int64(pairs[p, side]), pairs[p, 2 + side] - pairs[p, 3 - side]
            score[arm] += 1.0 if ahead > 0.0 else (-1.0 if ahead < 0.0 else 0.0)
            plays[arm] += pairs[p, 2] + pairs[p, 3]
    chosen = first_ranked(score, plays, np.ones(arms, dtype=np.bool_))
    result[0], result[1], result[2] = regret(utility, best, chosen, noise), arms, 1.0


@_jit
def sparring_trial(
    alpha: float, utility: Float64s, seed: int, noise: float, eps: Float32s, result: Float64s
) -> None:
    """Play one trial of Sparring: two UCB1 players, each rewarded by winning its side."""
    arms = utility.size
    best = np.argmax(utility)
    wins, plays = np.zeros((2, arms)), np.zeros((2, arms))
    allowed = np.ones(arms, dtype=np.bool_)
    for t in range(eps.size):
        log_term = alpha * math.log(t + 1.0)
        i = ucb1_arm(wins[0], plays[0], allowed, log_term, seed, t * STRIDE)
        allowed[i] = False
        j = ucb1_arm(wins[1], plays[1], allowed, log_term, seed, t * STRIDE + 1)
        allowed[i] = True
        eps[t] = pair_regret(utility, best, i, j, noise)
        first = left_wins(utility, i, j, noise, seed, t)
        wins[0, i] += 1.0 if first else 0.0
        wins[1, j] += 0.0 if first else 1.0
        plays[0, i] += 1.0
        plays[1, j] += 1.0
    mean, count = np.empty(arms), np.empty(arms)
    for k in range(arms):
        count[k] = plays[0, k] + plays[1, k]
        mean[k] = (wins[0, k] + wins[1, k]) / count[k] if count[k] > 0.0 else 0.5
    chosen = first_ranked(mean, count, allowed)
    result[0], result[1], result[2] = regret(utility, best, chosen, noise), arms, 1.0
