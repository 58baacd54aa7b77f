//go:build !race

package e2e

// raced: without the detector in the tests the daemon has none either, and is the program that people run.
const raced = false
