// Package housetest keeps the house in order: its test reads every Go file of
// the tree and fails where one breaks a rule of the house (architecture, section 3).
//
// It owns the tables that say where a package stands ([layers]) and who may use
// an outside library ([libraries]); a new package or library is entered there,
// with its reason. It promises that a break is printed with the reason of its
// rule, and that all files are read whatever their build tags.
//
// It refuses to look at generated clients, at testdata, and at what a package
// imports in its tests, except that pkg never imports internal.
package housetest
