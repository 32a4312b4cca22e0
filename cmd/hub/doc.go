// Package hub fetches model folders from the Hugging Face hub into the cache of
// the hub's Python client, so that each finds what the other fetched:
//
//	models--OWNER--NAME/refs/REVISION             the commit of a branch or tag
//	models--OWNER--NAME/blobs/HASH                the files, by hash
//	models--OWNER--NAME/snapshots/COMMIT/FILE     links to blobs
//
// It does not trust the server: file names stay below the snapshot, sizes are
// limited to the announced ones, and a file is valid only if its hash is right.
// A broken transfer resumes where it stopped.
package hub
