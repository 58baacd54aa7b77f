//go:build race

package e2e

// raced: the daemon is built with the race detector when the tests are.
const raced = true
