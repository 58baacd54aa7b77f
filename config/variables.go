package config

import (
	"reflect"
	"strings"
)

// Variable describes one variable for people.
type Variable struct {
	Name     string `json:"name"`
	Meaning  string `json:"meaning"`
	Default  string `json:"default"`
	Allowed  string `json:"allowed,omitempty"`
	Example  string `json:"example,omitempty"`
	Secret   bool   `json:"secret,omitempty"`
	Required bool   `json:"required,omitempty"`

	min, max, oneof string
	index           []int // of the field, for reflect.Value.FieldByIndex
}

// Variables lists every variable in the order of the struct; those of a webhook source stand once, with <NAME> in place
// of its name.
func Variables() []Variable {
	all := variablesOf(reflect.TypeFor[Config](), Prefix, nil)
	return append(all, sourceVariables("<NAME>")...)
}

func sourceVariables(name string) []Variable {
	return variablesOf(reflect.TypeFor[Source](), sourcePrefix(name), nil)
}

// sourcePrefix is what the variables of one webhook source begin with.
func sourcePrefix(name string) string {
	return Prefix + "WEBHOOK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
}

func variablesOf(t reflect.Type, prefix string, at []int) []Variable {
	var all []Variable
	for i := range t.NumField() {
		field := t.Field(i)
		index := append(append([]int(nil), at...), i)
		if sub, ok := field.Tag.Lookup("envPrefix"); ok {
			all = append(all, variablesOf(field.Type, prefix+sub, index)...)
			continue
		}
		if name := field.Tag.Get("env"); name != "" && name != "-" {
			all = append(all, describe(field, prefix+name, index))
		}
	}
	return all
}

func describe(field reflect.StructField, name string, index []int) Variable {
	tag := field.Tag
	v := Variable{
		Name: name, Meaning: tag.Get("doc"), Default: tag.Get("envDefault"), Allowed: tag.Get("allowed"),
		Example: tag.Get("example"), Secret: field.Type == reflect.TypeFor[Secret](), Required: tag.Get("required") == "true",
		min: tag.Get("min"), max: tag.Get("max"), oneof: tag.Get("oneof"), index: index,
	}
	if shown := tag.Get("shown"); shown != "" {
		v.Default = shown
	}
	if v.Required {
		v.Default = "required"
	}
	if v.oneof != "" {
		v.Allowed = "one of " + strings.ReplaceAll(v.oneof, ",", ", ")
	}
	switch {
	case v.min != "" && v.max != "":
		v.Allowed += ", " + v.min + " to " + v.max
	case v.min != "":
		v.Allowed += ", at least " + v.min
	}
	if v.Secret {
		v.Allowed = "a secret; better in the file that " + name + "_FILE names, or in systemd's credentials directory"
		v.Example = ""
	}
	return v
}
