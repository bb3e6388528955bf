package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/launch/adapt"
)

// listed is a tool in the format of OpenAI's APIs: nested in chat completions, flat in responses.
type listed struct {
	Type     string          `json:"type"`
	Function *function       `json:"function"`
	Name     string          `json:"name"`
	About    string          `json:"description"`
	Input    json.RawMessage `json:"parameters"`
}

type function struct {
	Name  string          `json:"name"`
	About string          `json:"description"`
	Input json.RawMessage `json:"parameters"`
}

type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
}

// tools parses a list: an array, or an object with one as tools or data. The error is a sentence
// that ends with a full stop.
func tools(text []byte) (*adapt.Reading[names], error) {
	text = bytes.TrimSpace(text)
	var list []json.RawMessage
	if len(text) > 0 && text[0] == '{' {
		var held struct {
			Tools []json.RawMessage `json:"tools"`
			Data  []json.RawMessage `json:"data"`
		}
		if json.Unmarshal(text, &held) != nil {
			return nil, errors.New("it is neither a JSON array of tools nor an object with such an array in \"tools\".")
		}
		if list = held.Tools; list == nil {
			list = held.Data
		}
	} else if json.Unmarshal(text, &list) != nil {
		return nil, errors.New("it is neither a JSON array of tools nor an object with such an array in \"tools\".")
	}
	named := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	o := &adapt.Reading[names]{Own: names{}}
	for i, raw := range list {
		var t listed
		if err := json.Unmarshal(raw, &t); err != nil {
			o.Notes = append(o.Notes, fmt.Sprintf("Entry %d of the list is not a tool and is skipped.", i+1))
			continue
		}
		f := function{t.Name, t.About, t.Input}
		if t.Function != nil {
			f = *t.Function
		}
		_, twice := o.Own[f.Name]
		input := bytes.TrimSpace(f.Input)
		switch {
		case t.Type != "" && t.Type != "function":
			o.Notes = append(o.Notes, fmt.Sprintf("Entry %d of the list is not of type \"function\" and is skipped.", i+1))
			continue
		case !named.MatchString(f.Name):
			o.Notes = append(o.Notes, fmt.Sprintf("Entry %d of the list has a name that is not 1 to 128 letters, digits, \"_\", \".\" and \"-\", and is skipped.", i+1))
			continue
		case twice:
			o.Notes = append(o.Notes, fmt.Sprintf("Entry %d of the list has the name of another entry and is skipped.", i+1))
			continue
		case len(input) == 0 || string(input) == "null":
			input = []byte(`{"type":"object","properties":{}}`)
		case input[0] != '{':
			o.Notes = append(o.Notes, fmt.Sprintf("Entry %d of the list has parameters that are not a schema, and is skipped.", i+1))
			continue
		}
		text, err := plainjson.Marshal(definition{f.Name, f.About, input})
		if err != nil {
			o.Notes = append(o.Notes, fmt.Sprintf("Entry %d of the list cannot be converted to a tool and is skipped.", i+1))
			continue
		}
		o.Own[f.Name] = f.Name
		o.Tools = append(o.Tools, adapt.Tool{Name: f.Name, From: "tool call", Raw: text})
	}
	if len(o.Tools) == 0 {
		return nil, errors.New("it contains no usable tool.")
	}
	return o, nil
}
