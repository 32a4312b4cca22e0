// Package tune measures which implementation of a matmul is fastest at each
// number of rows, and summarizes it: FlashDecoding++ (Hong et al. 2023) §5,
// inflection points M1 and M2. A C driver does the timing with the threads and
// kernels of a library, so Go is outside of what is measured. The statistics
// are pure and know nothing of devices.
package tune
