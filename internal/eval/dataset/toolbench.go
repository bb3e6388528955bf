package dataset

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/eval"
)

// toolBenchTask is a task of MCPToolBench++.
type toolBenchTask struct {
	UUID     string              `json:"uuid"`
	Category string              `json:"category"`
	Tools    json.RawMessage     `json:"tools"`
	Servers  map[string][]string `json:"mcp_tools_dict"`
	Query    string              `json:"query"`
	Labels   *[]struct {
		Name    string          `json:"name"`
		Server  string          `json:"mcp_server"`
		Similar []similarTool   `json:"similar_tools"`
		Input   json.RawMessage `json:"input"`
	} `json:"function_call_label"`
}

// similarTool is a name, or an object with one.
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

// readToolBench reads a file of MCPToolBench++.
func readToolBench(path string, o Options) ([]eval.Sample, error) {
	file, err := load(path)
	if err != nil {
		return nil, err
	}
	return toolBenchTasks(file, o)
}

func toolBenchTasks(file *source, o Options) (samples []eval.Sample, err error) {
	items, err := file.list()
	if err != nil {
		return nil, err
	}
	seen := unique{}
	for i := range items {
		item := &items[i]
		if o.Limit > 0 && len(samples) == o.Limit {
			break
		}
		var t toolBenchTask
		if err := item.decode(&t); err != nil {
			return nil, err
		}
		switch {
		case t.UUID == "":
			return nil, item.fault("the member uuid is missing")
		case t.Labels == nil:
			return nil, item.fault("task %s has no function_call_label", t.UUID)
		}
		if err := seen.add(item, t.UUID); err != nil {
			return nil, err
		}
		s := eval.Sample{ID: t.UUID, Category: t.Category, Question: t.Query}
		if s.Tools, err = toolsOf(t.Tools); err != nil {
			return nil, item.fault("tools: %w", err)
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
			if !slices.Contains(s.Expected, label.Name) {
				s.Expected = append(s.Expected, label.Name)
			}
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// serverOf is the server that has a tool, the first by name of several.
func serverOf(servers map[string][]string, tool string) string {
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		if slices.Contains(servers[server], tool) {
			return server
		}
	}
	return ""
}
