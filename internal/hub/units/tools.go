package units

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/launch/native"
)

type (
	convertArguments struct {
		Value      float64  `json:"value" jsonschema:"The value to convert."`
		Conversion string   `json:"conversion" jsonschema:"Name of the conversion, such as celsius_to_fahrenheit. list_conversions names all."`
		Area       *float64 `json:"area,omitempty" jsonschema:"Area in square meters. lux_to_lumen and lumen_to_lux need it; for weber_to_tesla and tesla_to_weber it is 1 if left out; the others do not have it."`
	}
	listArguments struct {
		Category string `json:"category,omitempty" jsonschema:"One of temperature, length, weight, time, capacity, area, speed, data_storage, pressure, power, energy, frequency, fuel_economy, electrical, magnetic, radiation, light_intensity; or all, which is the default."`
		WithHelp bool   `json:"with_help,omitempty" jsonschema:"If true, the description of each conversion is included."`
	}
	helpArguments struct {
		Name string `json:"fn_name,omitempty" jsonschema:"Name of a conversion. If left out, all are described."`
	}
)

// Tools returns the tools convert, list_conversions and help. They keep no state.
func Tools() []native.Tool {
	return []native.Tool{
		native.Must(native.Typed("convert", "Converts a value from one unit to another by the name of the conversion, and returns the value in the new unit. There are 41 conversions of temperature, length, weight, speed, energy and others.",
			convert, native.Title("Convert units"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
		native.Must(native.Typed("list_conversions", "Lists the conversions that convert knows, as JSON: an array of names, or with with_help an object from names to descriptions.",
			list, native.Title("List conversions"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
		native.Must(native.Typed("help", "Describes one conversion of convert and its arguments, or all of them.",
			helpTool, native.Title("Describe conversions"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
	}
}

func find(name string) (conversion, error) {
	all := conversions()
	i := slices.IndexFunc(all, func(c conversion) bool { return c.name == name })
	if i < 0 {
		return conversion{}, fmt.Errorf("there is no conversion %.60q. Call list_conversions for the names", name)
	}
	return all[i], nil
}

func convert(_ context.Context, _ *native.Call, in convertArguments) (float64, error) {
	c, err := find(in.Conversion)
	if err != nil {
		return 0, err
	}
	area := 1.0
	switch {
	case in.Area != nil && c.area == noArea:
		return 0, fmt.Errorf("%s has no area; leave it out", c.name)
	case in.Area != nil && *in.Area <= 0:
		return 0, fmt.Errorf("the area must be above 0; give it in square meters")
	case in.Area != nil:
		area = *in.Area
	case c.area == requiredArea:
		return 0, fmt.Errorf("%s needs the area in square meters; give it as area", c.name)
	}
	r := c.of(in.Value, area)
	if math.IsInf(r, 0) || math.IsNaN(r) {
		return 0, fmt.Errorf("the result is too large for a float; use a smaller value")
	}
	return r, nil
}

func list(_ context.Context, _ *native.Call, in listArguments) (string, error) {
	if in.Category != "" && in.Category != "all" && !slices.Contains(categories(), in.Category) {
		return "", fmt.Errorf("there is no category %.60q; use all or one of %s", in.Category, strings.Join(categories(), ", "))
	}
	var names []string
	descriptions := map[string]string{}
	for _, c := range conversions() {
		if in.Category == "" || in.Category == "all" || in.Category == c.category {
			names = append(names, c.name)
			descriptions[c.name] = c.help()
		}
	}
	var v any = names
	if in.WithHelp {
		v = descriptions
	}
	b, err := json.Marshal(v)
	return string(b), err
}

func (c *conversion) signature() string {
	return c.name + [...]string{"(value)", "(value, area=1.0)", "(value, area)"}[c.area]
}

func (c *conversion) help() string { return "function: " + c.signature() + "\n    " + c.doc }

func helpTool(_ context.Context, _ *native.Call, in helpArguments) (string, error) {
	if in.Name != "" {
		c, err := find(in.Name)
		return c.help(), err
	}
	all := conversions()
	var b strings.Builder
	fmt.Fprintf(&b, "Available conversions (%d):\n", len(all))
	for _, c := range all {
		b.WriteString("\n  " + c.signature() + "\n      " + c.doc)
	}
	return b.String(), nil
}
