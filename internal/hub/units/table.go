package units

// conversion changes a value; area is in square metres.
type conversion struct {
	name, category, doc string
	area                areaUse
	of                  func(v, area float64) float64
}

// areaUse specifies whether a conversion takes an area.
type areaUse int

const (
	noArea areaUse = iota
	optionalArea
	requiredArea
)

// times multiplies by a factor, over divides by it. Dividing by a factor differs in the
// last bit from multiplying by its inverse.
func times(f float64) func(v, _ float64) float64 { return func(v, _ float64) float64 { return v * f } }

func over(f float64) func(v, _ float64) float64 { return func(v, _ float64) float64 { return v / f } }

// categories are in the order in which they are listed.
func categories() []string {
	return []string{
		"temperature", "length", "weight", "time", "capacity", "area", "speed", "data_storage", "pressure", "power", "energy",
		"frequency", "fuel_economy", "electrical", "magnetic", "radiation", "light_intensity",
	}
}

// conversions returns the table, ordered by category.
func conversions() []conversion {
	return []conversion{
		{name: "celsius_to_fahrenheit", category: "temperature", doc: "Degrees Celsius to degrees Fahrenheit.", of: func(v, _ float64) float64 { return v*9/5 + 32 }},
		{name: "fahrenheit_to_celsius", category: "temperature", doc: "Degrees Fahrenheit to degrees Celsius.", of: func(v, _ float64) float64 { return (v - 32) * 5 / 9 }},
		{name: "kelvin_to_celsius", category: "temperature", doc: "Kelvin to degrees Celsius.", of: func(v, _ float64) float64 { return v - 273.15 }},
		{name: "celsius_to_kelvin", category: "temperature", doc: "Degrees Celsius to kelvin.", of: func(v, _ float64) float64 { return v + 273.15 }},
		{name: "meters_to_feet", category: "length", doc: "Meters to feet.", of: times(3.28084)},
		{name: "feet_to_meters", category: "length", doc: "Feet to meters.", of: over(3.28084)},
		{name: "centimeters_to_inches", category: "length", doc: "Centimeters to inches.", of: over(2.54)},
		{name: "inches_to_centimeters", category: "length", doc: "Inches to centimeters.", of: times(2.54)},
		{name: "kilograms_to_pounds", category: "weight", doc: "Kilograms to pounds.", of: times(2.20462)},
		{name: "pounds_to_kilograms", category: "weight", doc: "Pounds to kilograms.", of: over(2.20462)},
		{name: "seconds_to_minutes", category: "time", doc: "Seconds to minutes.", of: over(60)},
		{name: "minutes_to_seconds", category: "time", doc: "Minutes to seconds.", of: times(60)},
		{name: "liters_to_gallons", category: "capacity", doc: "Liters to US gallons.", of: over(3.78541)},
		{name: "gallons_to_liters", category: "capacity", doc: "US gallons to liters.", of: times(3.78541)},
		{name: "square_meters_to_square_feet", category: "area", doc: "Square meters to square feet.", of: times(10.7639)},
		{name: "square_feet_to_square_meters", category: "area", doc: "Square feet to square meters.", of: over(10.7639)},
		{name: "kmh_to_mph", category: "speed", doc: "Kilometers per hour to miles per hour.", of: over(1.60934)},
		{name: "mph_to_kmh", category: "speed", doc: "Miles per hour to kilometers per hour.", of: times(1.60934)},
		{name: "bits_to_bytes", category: "data_storage", doc: "Bits to bytes.", of: over(8)},
		{name: "bytes_to_kilobytes", category: "data_storage", doc: "Bytes to kilobytes of 1024 bytes.", of: over(1024)},
		{name: "kilobytes_to_megabytes", category: "data_storage", doc: "Kilobytes to megabytes of 1024 kilobytes.", of: over(1024)},
		{name: "pascal_to_bar", category: "pressure", doc: "Pascal to bar.", of: over(100000)},
		{name: "bar_to_atm", category: "pressure", doc: "Bar to standard atmospheres.", of: over(1.01325)},
		{name: "watts_to_kilowatts", category: "power", doc: "Watts to kilowatts.", of: over(1000)},
		{name: "kilowatts_to_horsepower", category: "power", doc: "Kilowatts to mechanical horsepower.", of: times(1.34102)},
		{name: "joules_to_calories", category: "energy", doc: "Joules to thermochemical calories.", of: over(4.184)},
		{name: "calories_to_kilowatt_hours", category: "energy", doc: "Calories to kilowatt hours.", of: times(0.00000116222)},
		{name: "hertz_to_kilohertz", category: "frequency", doc: "Hertz to kilohertz.", of: over(1000)},
		{name: "kilohertz_to_megahertz", category: "frequency", doc: "Kilohertz to megahertz.", of: over(1000)},
		{name: "km_per_liter_to_mpg", category: "fuel_economy", doc: "Kilometers per liter to miles per US gallon.", of: times(2.35215)},
		{name: "mpg_to_km_per_liter", category: "fuel_economy", doc: "Miles per US gallon to kilometers per liter.", of: over(2.35215)},
		{name: "ampere_to_milliampere", category: "electrical", doc: "Ampere to milliampere.", of: times(1000)},
		{name: "volt_to_kilovolt", category: "electrical", doc: "Volt to kilovolt.", of: over(1000)},
		{name: "ohm_to_kiloohm", category: "electrical", doc: "Ohm to kiloohm.", of: over(1000)},
		{name: "weber_to_tesla", category: "magnetic", doc: "Magnetic flux in weber to flux density in tesla over an area.", area: optionalArea, of: func(v, area float64) float64 { return v / area }},
		{name: "gauss_to_tesla", category: "magnetic", doc: "Gauss to tesla.", of: over(10000)},
		{name: "tesla_to_weber", category: "magnetic", doc: "Magnetic flux density in tesla to flux in weber through an area.", area: optionalArea, of: func(v, area float64) float64 { return v * area }},
		{name: "tesla_to_gauss", category: "magnetic", doc: "Tesla to gauss.", of: times(10000)},
		{name: "gray_to_sievert", category: "radiation", doc: "Gray to sievert, for radiation of weight 1.", of: times(1)},
		{name: "lux_to_lumen", category: "light_intensity", doc: "Illuminance in lux to luminous flux in lumen on an area.", area: requiredArea, of: func(v, area float64) float64 { return v * area }},
		{name: "lumen_to_lux", category: "light_intensity", doc: "Luminous flux in lumen to illuminance in lux on an area.", area: requiredArea, of: func(v, area float64) float64 { return v / area }},
	}
}
