// Package jinja renders Jinja templates of chats as Python's Jinja does, set
// up as Hugging Face transformers sets it up: a sandbox whose lists and
// dictionaries cannot be changed, trim_blocks and lstrip_blocks on, a tojson
// that escapes nothing, and the loop controls break and continue. There is no
// access to files, to other templates or to Python.
//
// Every render is bounded in steps, in bytes and in depth, so that a hostile
// template ends in an error.
//
// Strings know which of their bytes came from the user of the template and
// which from its author, through every operation. A caller that turns the text
// into tokens can so refuse special tokens that a user wrote.
package jinja
