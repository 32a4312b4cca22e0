package policy

import "time"

// The constants of the policy, each with the experiment that set it. "Simulated"
// is `script/simulate serving --seeds 10` with the constant changed. What else
// steers serving lies where it is used: how much drafts must gain and how long
// they rest (speculate.Margin, backoffFirst), how long a step waits for the events
// of the last one and a first request for others (flushShare and batchingWindow in the
// scheduler).
const (
	// stretch is how many times as long as without them a step with prompts may
	// take, or one with drafts as one of a single token. The largest that keeps 99 %
	// of the tokens within the target of their latency: simulated, the worst load has
	// 0.95 % late ones. With 2.5 that is 2.4 %, for 1 to 2 % more tokens/s (overload,
	// greedy, waves-16) and 7 % (agents); 1.5 loses 4 % (agents, few-drafts).
	stretch = 2

	// idleStretch is how many times the step time a step may take while no request
	// generates. Simulated: with 4 a client alone has 2 % fewer tokens/s; with 16 in
	// "long-short" 7.3 % of the short prompts miss the target of the first token, with
	// 8 it is 1.1 %.
	idleStretch = 8

	// fewDecoding is how many requests must wait for their first token for each one
	// that generates before steps are stretched for them and they wait for each other.
	// Simulated: with 1, 1.2 % of the tokens of "overload" and "greedy" are late, with 2
	// it is 1.0 and 1.1 %.
	fewDecoding = 2

	// burstStretch is how many times the step time a step takes at most for those
	// that wait. Simulated: with 3 the waves have 1 % fewer tokens/s, with 5 1.2 % of the
	// tokens of "overload" are late. Measured at 16 clients, 25 interleaved pairs: without
	// it 0.975 times the tokens/s.
	burstStretch = 4

	// barrierTime is how long the prompts of a burst may take for its requests to wait
	// for each other. Simulated: with 1 s 4.0 % of the first tokens of "waves-16" are late,
	// with 0.7 s 1.5 %; with 0.5 s "agents" has 3 % fewer tokens/s and "waves-16" 1 %.
	barrierTime = 700 * time.Millisecond

	// tileRows are the rows that most kernels compute together. A step's tokens are
	// rounded to whole tiles; without that 1.7 % of the tokens/s are lost on average of
	// all loads (--ablate). Measured: a tile costs 1.5 ms beside 0.36 ms for each of its
	// tokens (latency.json).
	tileRows = 16

	// maxOvertaken is how many steps in a row a prompt may be overtaken by shorter
	// ones, or be held back for those of its burst. Simulated: with 32 seven requests
	// starve, with 16 one, with 12 none; with 8 the median time to the first token of
	// "slow" is 1.15 times as long.
	maxOvertaken = 12

	// aging is after how long a waiting request counts as one step more urgent, up to
	// the most urgent that wait: beyond, it would take the turns of other clients.
	// Simulated: with 20 s 86 requests of "urgent" starve, with 5 s 4, with 1 s 4.
	aging = 5 * time.Second

	// memory is the weight of earlier steps against the next one: of some 50 steps,
	// so that estimates follow a machine whose load changes within seconds
	// (TestPromptBudget).
	memory = 0.98

	// outlier is how many times as long as expected a step may have taken to be taken
	// for what it takes: what is above was a wait for somebody else. In the traces of
	// latency.json three steps in a hundred are, of a shared machine.
	outlier = 3

	// enough is how many steps of a kind must have been measured before they are
	// believed to be as slow as they were: single ones stood still for somebody else,
	// or touched memory for the first time (TestTimes).
	enough = 3

	// firstSlope is what a further token of a small step is taken to cost, in steps of
	// one, before anything is known. In latency.json it is 0.16 and less: 0.12 lets
	// drafts be tried.
	firstSlope = 0.12
)
