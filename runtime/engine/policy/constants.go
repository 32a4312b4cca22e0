package policy

import "time"

// The constants of the policy, each with the experiment that set it. "Simulated"
// is `script/simulate serving --seeds 10` with the constant changed. What else
// steers serving lies where it is used: how much drafts must gain and how long
// they rest (speculate.Margin, backoffFirst), and how long a step waits for the
// events of the last one (flushShare in the scheduler).
const (
	// stretch is how many times as long as without them a step with prompts may
	// take, or one with drafts as one of a single token. Simulated: 1.5 gives 1 to 7 %
	// fewer tokens/s under load (overload, greedy, agents); 2.5 gives 1 to 3 % more, but
	// 2.4 % of the tokens of "overload" and 5 % of those of "slow" come later than the
	// target, which are 0.7 % and 2.6 % with 2.
	stretch = 2

	// idleStretch is how many times the step time a step may take while no request
	// generates. Simulated: with 4 a client alone has 2 % fewer tokens/s; with 16 in
	// "long-short" 7.3 % of the short prompts miss the target of the first token, with
	// 8 it is 1.1 %.
	idleStretch = 8

	// tileRows are the rows that most kernels compute together. A step's tokens are
	// rounded to whole tiles; without that 2.2 % of the tokens/s are lost on average of
	// all loads (--ablate). Measured: a tile costs 1.5 ms beside 0.36 ms for each of its
	// tokens (latency.json).
	tileRows = 16

	// maxOvertaken is how many steps in a row shorter prompts may overtake a longer
	// one. Simulated: with 4 the median time to the first token of "slow" is 1.7 times
	// as long, with 32 the 99th percentile is 1.17 times; 8 and 16 are close.
	maxOvertaken = 16

	// aging is after how long a waiting request counts as one step more urgent, up to
	// the most urgent that wait: beyond, it would take the turns of other clients.
	// Simulated: without it 4 times as many requests of "urgent" starve.
	aging = 5 * time.Second

	// memory is the weight of earlier steps against the next one: of some 50 steps,
	// so that estimates follow a machine whose load changes within seconds
	// (TestPromptBudget).
	memory = 0.98

	// outlier is how many times as long as expected a step may have taken to be taken
	// for what it takes: what is above was a wait for somebody else. In the traces of
	// latency.json one step in 50 of a shared machine is above.
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
