"""Kernels of the duels: random numbers by counter, elimination, and whole simulated trials.

The engines call :func:`below`, :func:`bounds` and :func:`dominated` step by step; the ``*_trials``
functions play complete trials of one algorithm. Random numbers are functions of (seed, trial, step)
and trials own their outputs, so results do not depend on how trials are shared among threads. The
kernels are serial and release the interpreter lock: threads come from outside, which compiles three
times faster than numba's parallel loops.
"""

import math

import numba
import numpy as np

# Step t owns the counters t * STRIDE .. t * STRIDE + STRIDE - 1; the last one decides the answer.
STRIDE = 8
ANSWER = 7

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")


@_jit
def mix(x):  # type: ignore[no-untyped-def]
    """Return the splitmix64 finaliser of the 64-bit number ``x``."""
    x = np.uint64(x)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@_jit
def draw(seed, counter):  # type: ignore[no-untyped-def]
    """Return the 64 random bits that belong to ``counter`` in the stream of ``seed``."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    return mix(mix(np.uint64(seed) + golden) + (np.uint64(counter) + np.uint64(1)) * golden)


@_jit
def below(seed, counter, bound):  # type: ignore[no-untyped-def]
    """Return a random integer in [0, bound), bound < 2^32."""
    high = draw(seed, counter) >> np.uint64(32)
    return np.int64((high * np.uint64(bound)) >> np.uint64(32))


@_jit
def uniform(seed, counter):  # type: ignore[no-untyped-def]
    """Return a random number in [0, 1)."""
    return np.float64(draw(seed, counter) >> np.uint64(11)) * 2.0**-53


@_jit
def trial_seed(seed, trial):  # type: ignore[no-untyped-def]
    """Return the seed of one trial; an engine with this seed asks the same pairs."""
    return np.int64(draw(seed, trial) >> np.uint64(1))


@_jit
def bounds(wins, plays, background, log_term, per_arm, active, estimate, radius):  # type: ignore[no-untyped-def]
    """Write P-hat and the confidence radius of every arm (Algorithm 2, lines 5-7).

    ``background`` holds the two scalars that every arm carries on top of wins and plays. With
    ``per_arm`` false the radius is c* = c(n*), n* the least count among the active arms.
    """
    least = np.inf
    if not per_arm:
        for k in range(wins.size):
            if active[k]:
                least = min(least, plays[k] + background[1])
    common = math.sqrt(log_term / least) if least > 0.0 else 1.0
    for k in range(wins.size):
        n = plays[k] + background[1]
        known = n > 0.0
        safe = n if known else 1.0
        estimate[k] = (wins[k] + background[0]) / safe if known else 0.5
        radius[k] = common if not per_arm else (math.sqrt(log_term / safe) if known else 1.0)


@_jit
def dominated(estimate, radius, active, per_arm, everyone, out):  # type: ignore[no-untyped-def]
    """Write the arms to eliminate into ``out`` and return their number (Algorithm 3, lines 7-8).

    An arm is dominated when its upper bound is at most the largest lower bound. With ``everyone``
    false only the worst one goes, as printed; under a common radius that is argmin P-hat.
    """
    floor = -np.inf
    for k in range(active.size):
        if active[k]:
            floor = max(floor, estimate[k] - radius[k])
    count = 0
    worst = np.inf
    for k in range(active.size):
        if active[k] and estimate[k] + radius[k] <= floor:
            key = estimate[k] + radius[k] if per_arm else estimate[k]
            if everyone:
                out[count] = k
                count += 1
            elif key < worst:
                worst = key
                out[0] = k
                count = 1
    return count


@_jit
def correlate(wins, plays, similar, logs, winner, loser, clip, pin, sign):  # type: ignore[no-untyped-def]
    """Add (``sign`` 1) or take back (-1) the CorrUpdate of one duel for every arm (Eqs. 5-6).

    ``similar`` (K, K) holds r under the policy in force (floored, or raw), ``logs`` its logarithm:
    a table lookup replaces the two logarithms per arm, 5 times faster than computing them.
    """
    total = 1.0 + np.float64(similar[winner, loser])
    scale = sign / total if total > 0.0 else 0.0
    top = sign if clip else np.inf * sign
    wi, ni, wj, nj = wins[winner], plays[winner], wins[loser], plays[loser]
    for k in range(wins.size):
        near = np.float64(similar[winner, k])
        far = np.float64(similar[loser, k])
        both = np.float64(logs[winner, k]) + np.float64(logs[loser, k])
        share = 0.5 if both == 0.0 else np.float64(logs[loser, k]) / both
        tau = (near + far) * scale
        tau = min(tau, top) if sign > 0.0 else max(tau, top)
        tau = tau if near > 0.0 and far > 0.0 else 0.0
        wins[k] += share * tau
        plays[k] += tau
    if pin:
        wins[winner], plays[winner] = wi + sign, ni + sign
        wins[loser], plays[loser] = wj, nj + sign


@_jit
def regret(utility, best, arm, noise):  # type: ignore[no-untyped-def]
    """Return epsilon(b1, arm) = P(b1 beats arm) - 1/2 for Gaussian noise on either value."""
    return 0.5 * math.erf((utility[best] - utility[arm]) / (2.0 * noise))


@_jit
def left_wins(utility, left, right, noise, seed, step):  # type: ignore[no-untyped-def]
    """Return whether the noisy value of ``left`` exceeds that of ``right`` at this step."""
    chance = 0.5 * math.erfc((utility[right] - utility[left]) / (2.0 * noise))
    return uniform(seed, step * STRIDE + ANSWER) < chance


@_jit
def nth(mask, rank):  # type: ignore[no-untyped-def]
    """Return the index of the true entry of ``mask`` that has ``rank`` true ones before it."""
    for k in range(mask.size):
        if mask[k]:
            if rank == 0:
                return np.int64(k)
            rank -= 1
    return np.int64(-1)


@_jit
def first_ranked(estimate, count, active):  # type: ignore[no-untyped-def]
    """Return the active arm with the largest estimate, then count, then the lowest number."""
    chosen = nth(active, np.int64(0))
    for k in range(estimate.size):
        if active[k] and (
            estimate[k] > estimate[chosen]
            or (estimate[k] == estimate[chosen] and count[k] > count[chosen])
        ):
            chosen = np.int64(k)
    return chosen


@_jit
def forget(wins, plays, similar, logs, arm, duels, alive, clip, pin):  # type: ignore[no-untyped-def]
    """Delete every comparison with ``arm`` (Algorithm 3, line 9)."""
    rest = 0
    for s in range(duels.shape[0]):
        if alive[s] and (duels[s, 0] == arm or duels[s, 1] == arm):
            alive[s] = False
            correlate(wins, plays, similar, logs, duels[s, 0], duels[s, 1], clip, pin, -1.0)
        rest += alive[s]
    for k in range(wins.size):
        # What is left of an arm without comparisons is rounding: it must count as none.
        if rest == 0 or plays[k] < 1e-12:
            wins[k] = 0.0
            plays[k] = 0.0


@_jit
def corrduel_trial(utility, seed, noise, similar, logs, options, eps):  # type: ignore[no-untyped-def]
    """Play one trial of CorrDuel; return (returned arm, arms left, whether the best is left)."""
    log_term, per_arm, everyone, keep, clip, pin = options
    arms, horizon = utility.size, eps.size
    best = np.argmax(utility)
    wins, plays, background = np.zeros(arms), np.zeros(arms), np.zeros(2)
    estimate, radius = np.full(arms, 0.5), np.ones(arms)
    active = np.ones(arms, dtype=np.bool_)
    out = np.empty(arms, dtype=np.int64)
    duels = np.zeros((horizon, 2), dtype=np.int64)
    alive = np.zeros(horizon, dtype=np.bool_)
    left = arms
    for t in range(horizon):
        if left == 1:
            eps[t] = regret(utility, best, nth(active, np.int64(0)), noise)
            continue
        i = below(seed, t * STRIDE, left)
        j = below(seed, t * STRIDE + 1, left - 1)
        i, j = nth(active, i), nth(active, j + 1 if j >= i else j)
        eps[t] = 0.5 * (regret(utility, best, i, noise) + regret(utility, best, j, noise))
        if not left_wins(utility, i, j, noise, seed, t):
            i, j = j, i
        duels[t, 0], duels[t, 1], alive[t] = i, j, True
        correlate(wins, plays, similar, logs, i, j, clip, pin, 1.0)
        bounds(wins, plays, background, log_term, per_arm, active, estimate, radius)
        count = dominated(estimate, radius, active, per_arm, everyone, out)
        for m in range(count):
            active[out[m]] = False
            if not keep:
                forget(wins, plays, similar, logs, out[m], duels, alive, clip, pin)
        left -= count
    bounds(wins, plays, background, log_term, per_arm, active, estimate, radius)
    return first_ranked(estimate, plays, active), left, active[best]


@_jit
def least_played(plays, active, out):  # type: ignore[no-untyped-def]
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
def beat_the_mean_trial(utility, seed, noise, options, eps):  # type: ignore[no-untyped-def]
    """Play one trial of Beat-the-Mean: a common radius, the worst arm goes."""
    log_term, per_arm, everyone = options[0], options[1], options[2]
    arms, horizon = utility.size, eps.size
    best = np.argmax(utility)
    wins, plays, background = np.zeros(arms), np.zeros(arms), np.zeros(2)
    estimate, radius = np.full(arms, 0.5), np.ones(arms)
    active = np.ones(arms, dtype=np.bool_)
    out = np.empty(arms, dtype=np.int64)
    duels = np.zeros((horizon, 2), dtype=np.int64)
    won = np.zeros(horizon)
    left = arms
    for t in range(horizon):
        if left == 1:
            eps[t] = regret(utility, best, nth(active, np.int64(0)), noise)
            continue
        i = out[below(seed, t * STRIDE, least_played(plays, active, out))]
        active[i] = False
        j = nth(active, below(seed, t * STRIDE + 1, left - 1))
        active[i] = True
        eps[t] = 0.5 * (regret(utility, best, i, noise) + regret(utility, best, j, noise))
        duels[t, 0], duels[t, 1] = i, j
        won[t] = 1.0 if left_wins(utility, i, j, noise, seed, t) else 0.0
        wins[i] += won[t]
        plays[i] += 1.0
        # n* <= n_i, and intervals around 0 and 1 overlap while 2 c(n*) > 1: most steps end here.
        if plays[i] < 4.0 * log_term:
            continue
        bounds(wins, plays, background, log_term, per_arm, active, estimate, radius)
        if dominated(estimate, radius, active, per_arm, everyone, out) == 1:
            active[out[0]] = False
            left -= 1
            for s in range(t + 1):
                if duels[s, 1] == out[0]:
                    wins[duels[s, 0]] -= won[s]
                    plays[duels[s, 0]] -= 1.0
                    duels[s, 1] = -1
    bounds(wins, plays, background, log_term, per_arm, active, estimate, radius)
    return first_ranked(estimate, plays, active), left, active[best]


@_jit
def rucb_candidate(pairs, count, bonus, favourite, arms, seed, step):  # type: ignore[no-untyped-def]
    """Return (c, favourite): the optimistic champion of RUCB, lines 3-9 of its listing.

    Row p of ``pairs`` holds two arms and their wins over each other. A pair never compared has
    u = 2, so only compared pairs can keep an arm out of the set C of possible champions.
    """
    possible = np.ones(arms, dtype=np.bool_)
    for p in range(count):
        n = pairs[p, 2] + pairs[p, 3]
        extra = math.sqrt(bonus / n)
        if pairs[p, 2] / n + extra < 0.5:
            possible[np.int64(pairs[p, 0])] = False
        if pairs[p, 3] / n + extra < 0.5:
            possible[np.int64(pairs[p, 1])] = False
    size = np.sum(possible)
    if favourite >= 0 and not possible[favourite]:
        favourite = np.int64(-1)
    if size == 0:
        return below(seed, step * STRIDE, arms), favourite
    if size == 1:
        chosen = nth(possible, np.int64(0))
        return chosen, chosen
    if favourite >= 0:
        if uniform(seed, step * STRIDE + 1) < 0.5:
            return favourite, favourite
        possible[favourite] = False
        size -= 1
    return nth(possible, below(seed, step * STRIDE, size)), favourite


@_jit
def rucb_rival(pairs, count, bonus, champion, arms, seed, step):  # type: ignore[no-untyped-def]
    """Return the arm d != c with the largest u_dc, ties at random (line 10 of RUCB)."""
    value = np.full(arms, 2.0)
    value[champion] = -1.0
    for p in range(count):
        a, b = np.int64(pairs[p, 0]), np.int64(pairs[p, 1])
        n = pairs[p, 2] + pairs[p, 3]
        extra = math.sqrt(bonus / n)
        if b == champion:
            value[a] = pairs[p, 2] / n + extra
        if a == champion:
            value[b] = pairs[p, 3] / n + extra
    ties = value == np.max(value)
    return nth(ties, below(seed, step * STRIDE + 2, np.sum(ties)))


@_jit
def rucb_trial(utility, seed, noise, alpha, eps):  # type: ignore[no-untyped-def]
    """Play one trial of RUCB on the list of compared pairs: O(K + t) per step, not O(K^2)."""
    arms, horizon = utility.size, eps.size
    best = np.argmax(utility)
    pairs = np.zeros((horizon, 4))
    count = np.int64(0)  # not the literal 0, for which numba compiles everything twice
    favourite = np.int64(-1)
    score, plays = np.zeros(arms), np.zeros(arms)
    for t in range(horizon):
        bonus = alpha * math.log(t + 1.0)
        c, favourite = rucb_candidate(pairs, count, bonus, favourite, arms, seed, t)
        d = rucb_rival(pairs, count, bonus, c, arms, seed, t)
        eps[t] = 0.5 * (regret(utility, best, c, noise) + regret(utility, best, d, noise))
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
    for p in range(count):
        balance = np.sign(pairs[p, 2] - pairs[p, 3])
        a, b = np.int64(pairs[p, 0]), np.int64(pairs[p, 1])
        score[a] += balance
        score[b] -= balance
        plays[a] += pairs[p, 2] + pairs[p, 3]
        plays[b] += pairs[p, 2] + pairs[p, 3]
    return first_ranked(score, plays, plays >= 0.0), arms, True


@_jit
def ucb1_arm(wins, plays, allowed, log_term, seed, counter):  # type: ignore[no-untyped-def]
    """Return the arm of one UCB1 player: a random unplayed one, else the largest index."""
    fresh = (plays == 0.0) & allowed
    size = np.sum(fresh)
    if size > 0:
        return nth(fresh, below(seed, counter, size))
    chosen = np.int64(-1)
    top = -np.inf
    for k in range(wins.size):
        if allowed[k]:
            value = wins[k] / plays[k] + math.sqrt(log_term / plays[k])
            if value > top:
                top = value
                chosen = np.int64(k)
    return chosen


@_jit
def sparring_trial(utility, seed, noise, alpha, eps):  # type: ignore[no-untyped-def]
    """Play one trial of Sparring: two UCB1 players, each rewarded by winning its side."""
    arms, horizon = utility.size, eps.size
    best = np.argmax(utility)
    wins, plays = np.zeros((2, arms)), np.zeros((2, arms))
    allowed = np.ones(arms, dtype=np.bool_)
    for t in range(horizon):
        log_term = alpha * math.log(t + 1.0)
        i = ucb1_arm(wins[0], plays[0], allowed, log_term, seed, t * STRIDE)
        allowed[i] = False
        j = ucb1_arm(wins[1], plays[1], allowed, log_term, seed, t * STRIDE + 1)
        allowed[i] = True
        eps[t] = 0.5 * (regret(utility, best, i, noise) + regret(utility, best, j, noise))
        first = left_wins(utility, i, j, noise, seed, t)
        wins[0, i] += 1.0 if first else 0.0
        wins[1, j] += 0.0 if first else 1.0
        plays[0, i] += 1.0
        plays[1, j] += 1.0
    count = plays[0] + plays[1]
    mean = np.full(arms, 0.5)
    for k in range(arms):
        if count[k] > 0.0:
            mean[k] = (wins[0, k] + wins[1, k]) / count[k]
    return first_ranked(mean, count, allowed), arms, True


@_jit
def write_result(utility, best, outcome, noise, result):  # type: ignore[no-untyped-def]
    """Write regret of the returned arm, number of arms left, and whether the best is left."""
    chosen, left, kept = outcome
    result[0] = regret(utility, best, chosen, noise)
    result[1] = left
    result[2] = kept


@_jit
def corrduel_trials(utilities, first, seed, noise, similar, logs, options, eps, result):  # type: ignore[no-untyped-def]
    """Play one trial of CorrDuel per row of ``utilities`` (N, K), numbered from ``first``.

    Writes the stepwise regret into ``eps`` (N, T) and :func:`write_result` into ``result`` (N, 3).
    """
    for q in range(utilities.shape[0]):
        utility, key = utilities[q], trial_seed(seed, first + q)
        outcome = corrduel_trial(utility, key, noise, similar, logs, options, eps[q])
        write_result(utility, np.argmax(utility), outcome, noise, result[q])


@_jit
def beat_the_mean_trials(utilities, first, seed, noise, options, eps, result):  # type: ignore[no-untyped-def]
    """Play one trial of Beat-the-Mean per row of ``utilities``; see corrduel_trials."""
    for q in range(utilities.shape[0]):
        utility, key = utilities[q], trial_seed(seed, first + q)
        outcome = beat_the_mean_trial(utility, key, noise, options, eps[q])
        write_result(utility, np.argmax(utility), outcome, noise, result[q])


@_jit
def rucb_trials(utilities, first, seed, noise, alpha, eps, result):  # type: ignore[no-untyped-def]
    """Play one trial of RUCB per row of ``utilities``; see corrduel_trials."""
    for q in range(utilities.shape[0]):
        utility, key = utilities[q], trial_seed(seed, first + q)
        outcome = rucb_trial(utility, key, noise, alpha, eps[q])
        write_result(utility, np.argmax(utility), outcome, noise, result[q])


@_jit
def sparring_trials(utilities, first, seed, noise, alpha, eps, result):  # type: ignore[no-untyped-def]
    """Play one trial of Sparring per row of ``utilities``; see corrduel_trials."""
    for q in range(utilities.shape[0]):
        utility, key = utilities[q], trial_seed(seed, first + q)
        outcome = sparring_trial(utility, key, noise, alpha, eps[q])
        write_result(utility, np.argmax(utility), outcome, noise, result[q])
