// Package tune measures which implementation of a matmul is fastest at each row count
// and computes the inflection points M1 and M2 of FlashDecoding++ (Hong et al. 2023,
// §5). A C driver in the library does the timing with the library's threads and
// kernels, so the measured time contains no Go code. The statistics do not depend on a
// device.
package tune
