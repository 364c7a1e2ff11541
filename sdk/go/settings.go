package watchfire

import (
	"encoding/json"
	"io"
	"strings"
)

// A rule with settings, or what is wrong with them.
func configured(text string) (Rule, []Problem) {
	rule := export.make()
	if text == "" {
		text = "{}"
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(rule); err != nil {
		return nil, []Problem{problemOf(err)}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, []Problem{{"", "there is more than one JSON object"}}
	}
	return rule, rule.Check()
}

// The name of the key, where the error tells it.
func problemOf(err error) Problem {
	if wrong, is := err.(*json.UnmarshalTypeError); is {
		return Problem{wrong.Field, "expected a " + wrong.Type.String() + ", found a " + wrong.Value}
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if name, is := strings.CutPrefix(message, "unknown field "); is {
		return Problem{strings.Trim(name, `"`), message}
	}
	return Problem{"", message}
}

func joined(problems []Problem) string {
	lines := make([]string, len(problems))
	for at, problem := range problems {
		lines[at] = problem.Path + ": " + problem.Message
	}
	return strings.Join(lines, "; ")
}
