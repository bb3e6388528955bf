package dataset

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// toolBenchTask is a task of MCPToolBench++.
type toolBenchTask struct {
	UUID     string              `json:"uuid"`
	Category string              `json:"category"`
	Tools    json.RawMessage     `json:"tools"`
	Servers  map[string][]string `json:"mcp_tools_dict"`
	Query    string              `json:"query"`
	Labels   *[]toolBenchLabel   `json:"function_call_label"`
}

// toolBenchLabel is an expected call.
type toolBenchLabel struct {
	Name    string          `json:"name"`
	Server  string          `json:"mcp_server"`
	Similar []similarTool   `json:"similar_tools"`
	Input   json.RawMessage `json:"input"`
}

// quick parses a task without unneeded parts, in a third of the time of encoding/json. It returns
// false for a task in another format than that of the data set; encoding/json parses or rejects
// that one. The task refers to raw.
func (t *toolBenchTask) quick(raw []byte) bool {
	fits := utf8.Valid(raw)
	ok := rawjson.Members(raw, func(name string, value []byte) {
		switch fits = fits && lowerCase(name); name {
		case "uuid":
			fits = fits && decodeText(&t.UUID, value)
		case "category":
			fits = fits && decodeText(&t.Category, value)
		case "query":
			fits = fits && decodeText(&t.Query, value)
		case "tools":
			t.Tools = value
		case "mcp_tools_dict":
			fits = fits && t.Servers == nil && json.Unmarshal(value, &t.Servers) == nil
		case "function_call_label":
			fits = fits && t.Labels == nil
			t.Labels = &[]toolBenchLabel{}
			list := rawjson.Elements(value, func(from, to int) {
				var label toolBenchLabel
				fits = fits && label.quick(value[from:to])
				*t.Labels = append(*t.Labels, label)
			})
			fits = fits && list
		}
	})
	return ok && fits && t.UUID != "" && t.Labels != nil
}

func (l *toolBenchLabel) quick(raw []byte) bool {
	fits := true
	ok := rawjson.Members(raw, func(name string, value []byte) {
		switch fits = fits && lowerCase(name); name {
		case "name":
			fits = fits && decodeText(&l.Name, value)
		case "mcp_server":
			fits = fits && decodeText(&l.Server, value)
		case "similar_tools":
			fits = fits && l.Similar == nil && json.Unmarshal(value, &l.Similar) == nil
		case "input":
			l.Input = value
		}
	})
	return ok && fits
}

func decodeText(to *string, value []byte) (ok bool) {
	*to, ok = rawjson.Text(value)
	return ok
}

// lowerCase reports whether encoding/json, which ignores case, cannot confuse the name with another
// one.
func lowerCase(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// similarTool is a name, or an object with a name.
type similarTool struct{ Name string }

func (s *similarTool) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &s.Name) == nil {
		return nil
	}
	var object struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(raw, &object)
	s.Name = object.Name
	return err
}

// toolBenchTasks reads a file of MCPToolBench++.
func toolBenchTasks(file *source, o Options) ([]eval.Sample, error) {
	items, err := file.list()
	if err != nil {
		return nil, err
	}
	return samplesOf(items, o.Limit, func(_ int, item *element) (eval.Sample, error) { return toolBenchSample(item) })
}

func toolBenchSample(item *element) (s eval.Sample, err error) {
	var t toolBenchTask
	if !t.quick(item.raw) {
		t = toolBenchTask{}
		if err := item.decode(&t); err != nil {
			return s, err
		}
	}
	switch {
	case t.UUID == "":
		return s, item.fault("the member uuid is missing")
	case t.Labels == nil:
		return s, item.fault("task %s has no function_call_label", t.UUID)
	}
	s = eval.Sample{ID: t.UUID, Category: t.Category, Question: t.Query}
	if s.Tools, err = toolsOf(t.Tools); err != nil {
		return s, item.fault("tools: %w", err)
	}
	for j := range s.Tools {
		s.Tools[j].Server = serverOf(t.Servers, s.Tools[j].Name)
	}
	for _, label := range *t.Labels {
		call := eval.LabelledCall{Name: label.Name, Server: label.Server, Arguments: label.Input}
		for _, similar := range label.Similar {
			call.Similar = append(call.Similar, similar.Name)
		}
		s.Labels = append(s.Labels, call)
		s.Expect(label.Name)
	}
	return s, nil
}

// serverOf returns the server that has a tool; of several, the first by name.
func serverOf(servers map[string][]string, tool string) string {
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		if slices.Contains(servers[server], tool) {
			return server
		}
	}
	return ""
}
