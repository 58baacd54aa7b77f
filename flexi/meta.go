package flexi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Property is one field of an evidence, as the server describes it to our user.
type Property struct {
	Name, Type                                string
	MaxLength, Digits, Decimals               int // 0 = not told
	Mandatory, Writable, UpperCase, InSummary bool
	RefEvidence                               string   // the evidence that a relation points to
	Values                                    []string // keys of a select
}

// Properties are the fields of an evidence.
type Properties struct {
	Evidence string
	ByName   map[string]Property
}

// EvidenceInfo is one evidence that the server knows.
type EvidenceInfo struct {
	Path, Name, ImportStatus string
	ExtIDs                   bool // it keeps external ids
}

// Properties reads the fields of an evidence; they depend on rights and licence.
func (c *Client) Properties(ctx context.Context, evidence string) (*Properties, error) {
	if !evidenceName.MatchString(evidence) {
		return nil, &Error{Op: "properties", Outcome: Rejected, Err: fmt.Errorf("%q is not an evidence", evidence)}
	}
	p := &Properties{Evidence: evidence}
	err := c.get(ctx, "properties of "+evidence, c.companyPath("/"+evidence+"/properties.json"), func(a answer) error {
		var err error
		p.ByName, err = decodeProperties(a.body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Evidences reads the list of evidences.
func (c *Client) Evidences(ctx context.Context) ([]EvidenceInfo, error) {
	var out []EvidenceInfo
	err := c.get(ctx, "list of evidences", c.companyPath("/evidence-list.json"), func(a answer) error {
		var err error
		out, err = decodeEvidences(a.body)
		return err
	})
	return out, err
}

func (c *Client) get(ctx context.Context, op, path string, take func(answer) error) error {
	return c.read(ctx, ask{op: op, kind: "read", method: http.MethodGet, path: path + "?auth=http", take: take})
}

// decodeProperties reads the server's list and the map by name that clients keep.
func decodeProperties(body []byte) (map[string]Property, error) {
	out := make(map[string]Property)
	for _, m := range described(body, "properties", "property") {
		if p := decodeProperty(m); p.Name != "" {
			out[p.Name] = p
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no fields in it")
	}
	return out, nil
}

func decodeProperty(m map[string]json.RawMessage) Property {
	p := Property{
		Name: text(m["propertyName"]), Type: text(m["type"]), RefEvidence: text(m["fkEvidencePath"]),
		MaxLength: whole(m["maxLength"]), Digits: whole(m["digits"]), Decimals: whole(m["decimal"]),
		Mandatory: isTrue(m["mandatory"]), Writable: isTrue(m["isWritable"]),
		UpperCase: isTrue(m["isUpperCase"]), InSummary: isTrue(m["inSummary"]),
	}
	for _, v := range objects(inner(m["values"], "value")) {
		if key := firstText(v, "@key", "key"); key != "" {
			p.Values = append(p.Values, key)
		}
	}
	return p
}

func whole(raw json.RawMessage) int {
	n, _ := number(raw)
	return int(n)
}

func decodeEvidences(body []byte) ([]EvidenceInfo, error) {
	var out []EvidenceInfo
	for _, m := range described(body, "evidences", "evidence") {
		e := EvidenceInfo{
			Path: text(m["evidencePath"]), Name: text(m["evidenceName"]),
			ImportStatus: text(m["importStatus"]), ExtIDs: isTrue(m["extIdSupported"]),
		}
		if e.Path != "" {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no evidences in it")
	}
	return out, nil
}

// described reads {list:{item:[…]}} and {name:{…},…}, in the order of the list or of the names.
func described(body []byte, list, item string) []map[string]json.RawMessage {
	if in, err := root(body, list); err == nil {
		return objects(inner(in, item))
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	var out []map[string]json.RawMessage
	for _, k := range sortedKeys(all) {
		if m := object(all[k]); m != nil {
			out = append(out, m)
		}
	}
	return out
}
