// Package cuda computes a model's steps on an NVIDIA GPU, through the driver
// API alone: the library is opened when a model is, nothing of CUDA is needed
// to build or to start a program, and a stand-in for the library runs the same
// calls in tests.
package cuda
