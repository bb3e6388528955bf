// Package housetest tests the rules of the source tree. It reads every Go file and fails if one
// breaks a rule (architecture, section 3).
//
// It owns the tables of the layer of each package ([layers]) and of the permitted users of each
// external library ([libraries]). Add new packages and libraries there, with a reason. Each failure
// prints the reason of its rule, and files are read regardless of their build tags.
//
// Generated clients, testdata and the imports of tests are not checked, except that pkg never
// imports internal.
package housetest
