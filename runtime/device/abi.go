package device

import "github.com/iflowc/iflowc/runtime/artifact/manifest"

// Constants of the step ABI in templates/include/ifl_step.h, which all targets share.
const (
	ABI          = 7                   // IFL_ABI
	MaxOut       = manifest.MaxOutputs // IFL_MAX_OUT
	MaxAdapters  = 256                 // IFL_ADAPTERS: adapters that are loaded at a time
	DispatchRows = 513                 // IFL_ROWS
	PageRows     = 64                  // rows of a KV cache page
	CellRows     = 16                  // IFL_CELL_ROWS: rows of a sequence in a cell
)
