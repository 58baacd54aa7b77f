package config

import (
	"maps"
	"slices"
	"strings"
)

// nearest finds the name most likely meant: one that ends in the same words, else the one with the fewest changed
// letters, and none if more than half would have to change.
func nearest(name string, names map[string]bool) string {
	word := strings.TrimPrefix(name, Prefix)
	best, least := "", len(word)/2+1
	for _, candidate := range slices.Sorted(maps.Keys(names)) {
		rest := strings.TrimPrefix(candidate, Prefix)
		changes := distance(word, rest)
		if word != "" && strings.HasSuffix(rest, "_"+word) {
			changes = 0
		}
		// The ERP's own settings win a tie: they are the ones everybody sets.
		if changes < least || changes == least && strings.HasPrefix(rest, "FLEXI_") && !strings.Contains(best, "_FLEXI_") {
			best, least = candidate, changes
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
