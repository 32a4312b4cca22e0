// Package cuda computes a model's steps on an NVIDIA GPU. It uses the CUDA driver API
// alone and loads the driver's library when a model is opened, so building or starting
// a program does not need CUDA. In tests a stand-in for the library executes the same
// calls.
package cuda
