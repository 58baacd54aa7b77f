package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"flexid/flexi"
	"flexid/verify/compare"
)

// image is the before-image of what the event changes.
func (e *Engine) image(t *task, r flexi.Record) map[string]string {
	fields := []string{"storno"}
	if names, err := compare.FieldNames(t.ev.Body); err == nil {
		fields = append(fields, names...)
	}
	if names, err := compare.FieldNames(t.left); err == nil && t.left != nil {
		fields = append(fields, names...)
	}
	return compact(compare.Comparer{Props: t.props}.Image(fields, r))
}

// mostImage bounds a before-image, which lies in the row beside much else.
const mostImage = 8 << 10

// compact shortens the values of a large image to hashes, and one of very many fields to a single hash. What is equal stays
// equal, what differs differs.
func compact(image map[string]string) map[string]string {
	size := sizeOf(image)
	if size <= mostImage {
		return image
	}
	for k, v := range image {
		if len(v) > 20 {
			sum := sha256.Sum256([]byte(v))
			image[k] = "h:" + hex.EncodeToString(sum[:8])
		}
	}
	if size = sizeOf(image); size <= mostImage {
		return image
	}
	all := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(image)) {
		fmt.Fprintf(all, "%q:%q\n", k, image[k])
	}
	return map[string]string{allFields: "h:" + hex.EncodeToString(all.Sum(nil))}
}

// allFields stands for a whole image that is too large for its row field by field. No field of Flexi is called so.
const allFields = "*"

func sizeOf(image map[string]string) int {
	size := 0
	for k, v := range image {
		size += len(k) + len(v) + 6
	}
	return size
}

func sameImage(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// frozen says why a record must not be changed, "" if it may.
func frozen(r flexi.Record) string {
	if z := r.Text("zamekK"); z == "zamek.zamceno" || z == "zamek.polozamceno" {
		return "locked"
	}
	if s := r.Text("stavUhrK"); s == "stavUhr.uhrazeno" || s == "stavUhr.castUhr" || s == "stavUhr.uhrazenoRucne" {
		return "paid"
	}
	if truth(r, "zuctovano") && r.Text("zamekK") != "" && r.Text("zamekK") != "zamek.otevreno" {
		return "posted"
	}
	return ""
}

func truth(r flexi.Record, field string) bool {
	switch strings.ToLower(r.Text(field)) {
	case "true", "1", "ano":
		return true
	}
	return false
}
