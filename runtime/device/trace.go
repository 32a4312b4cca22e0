//go:build unix

package device

// What a Mark says besides the number of a region (IFL_WAIT, IFL_DONE).
const (
	Wait = -1 // the thread waits for the others
	Done = -2 // the thread has ended its step
)

// A Mark is when a thread of the model began something (ifl_mark).
type Mark struct {
	NS    int64 // on the monotonic clock
	What  int32 // index in the manifest's Regions, Wait or Done
	Layer int32
}

// A StepTrace is what a trace knows of one step.
type StepTrace struct {
	Graph, Tokens, OutRows, Seqs int
	Threads                      [][]Mark // of each thread, in order of time; views that the next step overwrites
}
