// Package pack evaluates the weight transforms of a model on its stored tensors, and
// writes the results to the packed file of a model binary (package packed).
package pack
