package policy

import "time"

// The constants of the policy, each with the experiment that set it. "Simulated" means
// `script/simulate serving --seeds 10` with the constant changed. Other constants of
// serving are defined where they are used: speculate.Margin and the back-off of drafts,
// and flushFraction and batchingWindow in package scheduler.
const (
	// stretch limits the duration of a step with prompts, in multiples of a step
	// without them, and of a step with drafts, in multiples of a one-token step. It is
	// the largest value that keeps 99 % of the tokens within the ITL target. Simulated:
	// 0.95 % of the tokens are late under the worst load. With 2.5, 2.4 % are late, for
	// 1 to 2 % more tokens/s (overload, greedy, waves-16) and 7 % (agents); 1.5 loses 4
	// % (agents, few-drafts).
	stretch = 2

	// idleStretch limits the duration of a step while no request decodes, in multiples
	// of StepTime. Simulated: with 4, a single client has 2 % fewer tokens/s; with 16,
	// 7.3 % of the short prompts of "long-short" miss the TTFT target, with 8 it is 1.1
	// %.
	idleStretch = 8

	// fewDecoding is the number of requests per decoding request that must wait for
	// their first token before steps are stretched for them and the prefill barrier
	// applies. Simulated: with 1, 1.2 % of the tokens of "overload" and "greedy" are
	// late; with 2, 1.0 and 1.1 %.
	fewDecoding = 2

	// burstStretch limits the duration of a step during a burst, in multiples of
	// StepTime. Simulated: with 3, the waves have 1 % fewer tokens/s; with 5, 1.2 % of
	// the tokens of "overload" are late. Measured with 16 clients, 25 interleaved
	// pairs: without it, 0.975 times the tokens/s.
	burstStretch = 4

	// barrierTime is the longest prefill of a burst for which the prefill barrier
	// applies. Simulated: with 1 s, 4.0 % of the first tokens of "waves-16" are late,
	// with 0.7 s 1.5 %; with 0.5 s, "agents" has 3 % fewer tokens/s and "waves-16" 1 %.
	barrierTime = 700 * time.Millisecond

	// tileRows is the number of rows that most kernels compute together. The number of
	// tokens of a step is rounded to whole tiles; without that, the average over all
	// loads loses 1.7 % of the tokens/s (--ablate). Measured: a tile costs 1.5 ms plus
	// 0.36 ms per token (latency.json).
	tileRows = 16

	// maxOvertaken is the number of consecutive steps in which shorter prompts may
	// overtake a prompt, or a barrier may hold it back. Simulated: with 32, seven
	// requests starve, with 16 one, with 12 none; with 8, the median TTFT of "slow" is
	// 1.15 times as long.
	maxOvertaken = 12

	// aging is the waiting time after which a request becomes one step more urgent, up
	// to the most urgent waiting request; beyond that it would defeat fairness among
	// clients. Simulated: with 20 s, 86 requests of "urgent" starve, with 5 s 4, with 1
	// s 4.
	aging = 5 * time.Second

	// decay is the weight of earlier steps at each new one. It corresponds to a window
	// of about 50 steps, so that estimates follow a machine with a load that changes
	// within seconds (TestPromptBudget).
	decay = 0.98

	// outlier is the multiple of its expected duration at which a step's measurement is
	// clipped: the rest was time lost to other processes. In the traces of
	// latency.json, recorded on a shared machine, 3 % of the steps exceed it.
	outlier = 3

	// minSamples is the number of steps of one kind that must be measured before slow
	// ones are believed: single steps may have lost time to other processes, or touched
	// memory for the first time (TestTimes).
	minSamples = 3

	// firstSlope is the assumed cost of a further token of a small step, in one-token
	// steps, before any is measured. In latency.json it is at most 0.16; with 0.12,
	// drafts are tried.
	firstSlope = 0.12
)
