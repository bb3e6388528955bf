package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
)

// object is one object of Kubernetes.
type object map[string]any

// at goes down a path of keys, and of indexes in lists.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func (o object) kind() string { return fmt.Sprint(o.at("kind")) }

func (o object) role() string {
	return fmt.Sprint(o.at("metadata", "labels", "app.kubernetes.io/component"))
}

// chartFunctions are the functions of Helm that the chart uses. Helm itself takes
// minutes to build; what it would make of these templates is the same.
func chartFunctions(t *template.Template) template.FuncMap {
	indent := func(n int, text string) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	}
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := t.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			b, err := yaml.MarshalWithOptions(v, yaml.IndentSequence(false))
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"nindent":    func(n int, text string) string { return "\n" + indent(n, text) },
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"trunc":      func(n int, text string) string { return text[:min(n, len(text))] },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"sha256sum":  func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"list":       func(items ...any) []any { return items },
		"fail":       func(why string) (string, error) { return "", errors.New(why) },
		"default": func(otherwise, v any) any {
			if v == nil || v == "" {
				return otherwise
			}
			return v
		},
		"add": func(a, b any) (int, error) {
			var x, y int
			_, err := fmt.Sscan(fmt.Sprint(a, " ", b), &x, &y)
			return x + y, err
		},
		"dict": func(pairs ...any) map[string]any {
			m := make(map[string]any)
			for i := 0; i+1 < len(pairs); i += 2 {
				m[pairs[i].(string)] = pairs[i+1]
			}
			return m
		},
	}
}

// over puts the values of b over those of a, as Helm does.
func over(a, b map[string]any) map[string]any {
	merged := make(map[string]any)
	for k, v := range a {
		merged[k] = v
	}
	for k, v := range b {
		below, isMap := merged[k].(map[string]any)
		above, both := v.(map[string]any)
		if isMap && both {
			v = over(below, above)
		}
		merged[k] = v
	}
	return merged
}

// render is what the chart makes of values.
func render(t *testing.T, values string) ([]object, error) {
	t.Helper()
	folder := filepath.Join("helm", "callyard")
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(chartFunctions(root))
	paths, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	if err != nil || len(paths) < 6 {
		t.Fatalf("%v: %v", paths, err)
	}
	for _, path := range paths {
		if _, err := root.New(filepath.Base(path)).Parse(read(t, path)); err != nil {
			t.Fatal(err)
		}
	}
	var defaults, own, about map[string]any
	parseYAML(t, filepath.Join(folder, "values.yaml"), &defaults)
	parseYAML(t, filepath.Join(folder, "Chart.yaml"), &about)
	if err := yaml.Unmarshal([]byte(values), &own); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"Values": over(defaults, own), "Release": map[string]any{"Name": "cy", "Namespace": "tools"}, "Chart": map[string]any{"AppVersion": about["appVersion"]},
	}
	var all []object
	for _, path := range paths {
		var b bytes.Buffer
		if err := root.ExecuteTemplate(&b, filepath.Base(path), data); err != nil {
			return nil, err
		}
		if filepath.Ext(path) == ".yaml" {
			all = append(all, documents(t, path, b.String())...)
		}
	}
	return all, nil
}

func documents(t *testing.T, path, text string) (all []object) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v in\n%s", path, err, text)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}
