package ledger

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"strings"

	"flexid/flexi"
)

const (
	rowPrefix    = "d."
	eventPrefix  = "v."
	numberPrefix = "n."
	idPrefix     = "e."
	asidePrefix  = "q."
	cursorPrefix = "c."
	metaKey      = "m.ledger"
	syncKey      = "m.sync" // its value means nothing
	marksKey     = "m.marks"
)

// RowID names a document. Company is as in the ERP's address, evidence and ext as in package flexi.
func RowID(company, evidence string, ext flexi.ExternalID) ID {
	return ID(hash("row", company, evidence, string(ext)))
}

// hash makes a key token of free text. The length goes before each part, or ("ab","c") and ("a","bc") would be one key;
// the first part keeps kinds apart.
func hash(parts ...string) string {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:20]))
}

func cursorKey(stream string) string { return cursorPrefix + stream }

func rowKey(id ID) string          { return rowPrefix + string(id) }
func eventKey(id ID, n int) string { return eventPrefix + string(id) + "." + strconv.Itoa(n) }

func numberKey(evidence, number string) string {
	return numberPrefix + hash("number", evidence, number)
}
func asideKey(id ID) string { return asidePrefix + string(id) }
func asideEventKey(eventID string) string {
	return asidePrefix + hash("aside", eventID)
}
func eventIDKey(eventID string) string { return idPrefix + hash("event", eventID) }

// rowOfKey gives the id of the row under a key.
func rowOfKey(key string) (ID, bool) {
	id, ok := strings.CutPrefix(key, rowPrefix)
	return ID(id), ok
}
