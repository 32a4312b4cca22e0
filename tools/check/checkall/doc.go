// Package checkall tests script/check-all, whose code is the Python package in this folder.
package checkall
