//go:build unix

package device

// Values of Mark.What other than an index of a region (IFL_WAIT, IFL_DONE).
const (
	Wait = -1 // the thread waits at a barrier
	Done = -2 // the thread has finished the step
)

// A Mark is a time at which a thread of the model changed what it does (ifl_mark).
type Mark struct {
	NS    int64 // monotonic clock
	What  int32 // index in the manifest's Regions, or Wait or Done
	Layer int32
}

// A StepTrace holds the marks of one step.
type StepTrace struct {
	Graph, Tokens, OutRows, Seqs int
	Threads                      [][]Mark // marks of each thread in order of time; the next step overwrites them
}
