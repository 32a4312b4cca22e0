// Package jinja renders Jinja chat templates like Python's Jinja in the configuration
// of Hugging Face transformers: a sandbox with immutable lists and dictionaries,
// trim_blocks and lstrip_blocks, a tojson filter without HTML escapes, and the loop
// controls break and continue. Templates cannot access files, other templates or
// Python.
//
// Every render is limited in steps, bytes and depth, so a hostile template ends in an
// error.
//
// Strings track which of their bytes came from the template's user and which from its
// author, through every operation. So a tokenizer can refuse special tokens in user
// text.
package jinja
