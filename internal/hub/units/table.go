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

// multiplyBy multiplies by a factor, over divides by it. Dividing by a factor differs in the
// last bit from multiplying by its inverse.
func multiplyBy(f float64) func(v, _ float64) float64 {
	return func(v, _ float64) float64 { return v * f }
}

func divideBy(f float64) func(v, _ float64) float64 {
	return func(v, _ float64) float64 { return v / f }
}

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
		{name: "meters_to_feet", category: "length", doc: "Meters to feet.", of: multiplyBy(3.28084)},
		{name: "feet_to_meters", category: "length", doc: "Feet to meters.", of: divideBy(3.28084)},
		{name: "centimeters_to_inches", category: "length", doc: "Centimeters to inches.", of: divideBy(2.54)},
		{name: "inches_to_centimeters", category: "length", doc: "Inches to centimeters.", of: multiplyBy(2.54)},
		{name: "kilograms_to_pounds", category: "weight", doc: "Kilograms to pounds.", of: multiplyBy(2.20462)},
		{name: "pounds_to_kilograms", category: "weight", doc: "Pounds to kilograms.", of: divideBy(2.20462)},
		{name: "seconds_to_minutes", category: "time", doc: "Seconds to minutes.", of: divideBy(60)},
		{name: "minutes_to_seconds", category: "time", doc: "Minutes to seconds.", of: multiplyBy(60)},
		{name: "liters_to_gallons", category: "capacity", doc: "Liters to US gallons.", of: divideBy(3.78541)},
		{name: "gallons_to_liters", category: "capacity", doc: "US gallons to liters.", of: multiplyBy(3.78541)},
		{name: "square_meters_to_square_feet", category: "area", doc: "Square meters to square feet.", of: multiplyBy(10.7639)},
		{name: "square_feet_to_square_meters", category: "area", doc: "Square feet to square meters.", of: divideBy(10.7639)},
		{name: "kmh_to_mph", category: "speed", doc: "Kilometers per hour to miles per hour.", of: divideBy(1.60934)},
		{name: "mph_to_kmh", category: "speed", doc: "Miles per hour to kilometers per hour.", of: multiplyBy(1.60934)},
		{name: "bits_to_bytes", category: "data_storage", doc: "Bits to bytes.", of: divideBy(8)},
		{name: "bytes_to_kilobytes", category: "data_storage", doc: "Bytes to kilobytes of 1024 bytes.", of: divideBy(1024)},
		{name: "kilobytes_to_megabytes", category: "data_storage", doc: "Kilobytes to megabytes of 1024 kilobytes.", of: divideBy(1024)},
		{name: "pascal_to_bar", category: "pressure", doc: "Pascal to bar.", of: divideBy(100000)},
		{name: "bar_to_atm", category: "pressure", doc: "Bar to standard atmospheres.", of: divideBy(1.01325)},
		{name: "watts_to_kilowatts", category: "power", doc: "Watts to kilowatts.", of: divideBy(1000)},
		{name: "kilowatts_to_horsepower", category: "power", doc: "Kilowatts to mechanical horsepower.", of: multiplyBy(1.34102)},
		{name: "joules_to_calories", category: "energy", doc: "Joules to thermochemical calories.", of: divideBy(4.184)},
		{name: "calories_to_kilowatt_hours", category: "energy", doc: "Calories to kilowatt hours.", of: multiplyBy(0.00000116222)},
		{name: "hertz_to_kilohertz", category: "frequency", doc: "Hertz to kilohertz.", of: divideBy(1000)},
		{name: "kilohertz_to_megahertz", category: "frequency", doc: "Kilohertz to megahertz.", of: divideBy(1000)},
		{name: "km_per_liter_to_mpg", category: "fuel_economy", doc: "Kilometers per liter to miles per US gallon.", of: multiplyBy(2.35215)},
		{name: "mpg_to_km_per_liter", category: "fuel_economy", doc: "Miles per US gallon to kilometers per liter.", of: divideBy(2.35215)},
		{name: "ampere_to_milliampere", category: "electrical", doc: "Ampere to milliampere.", of: multiplyBy(1000)},
		{name: "volt_to_kilovolt", category: "electrical", doc: "Volt to kilovolt.", of: divideBy(1000)},
		{name: "ohm_to_kiloohm", category: "electrical", doc: "Ohm to kiloohm.", of: divideBy(1000)},
		{name: "weber_to_tesla", category: "magnetic", doc: "Magnetic flux in weber to flux density in tesla over an area.", area: optionalArea, of: func(v, area float64) float64 { return v / area }},
		{name: "gauss_to_tesla", category: "magnetic", doc: "Gauss to tesla.", of: divideBy(10000)},
		{name: "tesla_to_weber", category: "magnetic", doc: "Magnetic flux density in tesla to flux in weber through an area.", area: optionalArea, of: func(v, area float64) float64 { return v * area }},
		{name: "tesla_to_gauss", category: "magnetic", doc: "Tesla to gauss.", of: multiplyBy(10000)},
		{name: "gray_to_sievert", category: "radiation", doc: "Gray to sievert, for radiation of weight 1.", of: multiplyBy(1)},
		{name: "lux_to_lumen", category: "light_intensity", doc: "Illuminance in lux to luminous flux in lumen on an area.", area: requiredArea, of: func(v, area float64) float64 { return v * area }},
		{name: "lumen_to_lux", category: "light_intensity", doc: "Luminous flux in lumen to illuminance in lux on an area.", area: requiredArea, of: func(v, area float64) float64 { return v / area }},
	}
}
