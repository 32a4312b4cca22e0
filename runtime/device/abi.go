package device

// Constants of the step ABI, templates/include/ifl_step.h, which every target
// shares.
const (
	ABI          = 4   // IFL_ABI
	MaxOut       = 8   // IFL_MAX_OUT
	DispatchRows = 513 // IFL_ROWS
	PageRows     = 64  // rows of a KV-cache page
)
