// Package irtest supports tests of passes: txtar archives of a module before and after a
// pass, comparison of two modules by running both, and random modules.
package irtest
