// Package units converts between units of measurement: the built-in server "units".
//
// The conversions are those of toolregistry-hub's converter, with its names and factors.
// Some factors are rounded to six digits, as 2.20462 pounds to the kilogram; the results
// are equal to the reference's, not more exact.
//
// It promises a finite result or an error. It refuses conversions that the table does not
// have: it does not derive the way back or a chain.
package units
