// Package irtest tests passes: txtar archives of a module before and after,
// comparison of two modules by running both, and random modules.
package irtest
