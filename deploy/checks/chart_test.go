package checks

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// object is a decoded Kubernetes object.
type object map[string]any

// at returns the value at a path of keys and list indexes.
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

// template renders the chart like helm template, and returns the concatenated manifests
// in the order of their names.
func template(values string) (string, error) {
	chart, err := loader.LoadDir("../helm/callyard")
	if err != nil {
		return "", err
	}
	given, err := loader.LoadValues(strings.NewReader(values))
	if err != nil {
		return "", err
	}
	data, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: "cy", Namespace: "tools", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, data)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(files[name]), "---")); filepath.Ext(name) == ".yaml" && text != "" {
			b.WriteString("---\n# " + name + "\n" + text + "\n")
		}
	}
	return b.String(), nil
}

// render returns the decoded objects of template. Decoding is strict: it fails for
// duplicate keys and for fields that the Kubernetes type does not have.
func render(t testing.TB, values string) ([]object, error) {
	t.Helper()
	text, err := template(values)
	if err != nil {
		return nil, err
	}
	var all []object
	d := yaml.NewDecoder(strings.NewReader(text), yaml.Strict())
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	strict := serializer.NewCodecFactory(clientscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, o := range all {
		if group, _, _ := strings.Cut(fmt.Sprint(o["apiVersion"]), "/"); group == "keda.sh" || group == "monitoring.coreos.com" {
			continue // custom resources of operators
		}
		raw, err := yaml.MarshalWithOptions(o, yaml.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := strict.Decode(raw, nil, nil); err != nil && !runtime.IsNotRegisteredError(err) {
			t.Errorf("%s %s: %v", o.role(), o.kind(), err)
		} else if err != nil {
			t.Errorf("%s %s is no resource of Kubernetes: %v", o.role(), o.kind(), err)
		}
	}
	return all, nil
}
