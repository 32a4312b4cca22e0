//go:build unix

package binary

import (
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// Settings are the settings for opening a model.
type Settings = ranks.Settings

// Templates returns the model's chat templates.
func (b *Binary) Templates() chat.Templates {
	m := b.Manifest
	return chat.Templates{Name: m.Name, Chat: m.Template, Tools: m.ToolTemplate, Generation: m.Generation}
}
