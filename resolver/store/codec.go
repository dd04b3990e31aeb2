package store

import (
	"errors"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// recordVersion is the first byte of every encoded value. It changes with Format.
const recordVersion = 5

// errRecord is returned for every value that cannot be decoded: the store is damaged, or not ours.
var errRecord = errors.New("a record cannot be decoded")

// Values are CBOR (RFC 8949) in its deterministic form: equal nouns have equal bytes, so Apply and Import compare
// without decoding. A noun is an array of its fields, see the tags in package catalog.
var (
	encoding = mode(cbor.CoreDetEncOptions().EncMode())
	decoding = mode(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   8,
		MaxArrayElements:  1<<31 - 1,              // a file may declare any number of objects
		UTF8:              cbor.UTF8DecodeInvalid, // a path may be any bytes
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

func mode[T any](m T, err error) T {
	if err != nil {
		panic("store: wrong options of the encoding: " + err.Error())
	}
	return m
}

func marshal(value any) []byte {
	b, err := encoding.Marshal(value)
	if err != nil {
		panic("store: a noun that cannot be encoded: " + err.Error()) // impossible: all fields have plain types
	}
	return b
}

// encode encodes a value without times.
func encode(value any) []byte { return slices.Concat([]byte{recordVersion}, marshal(value)) }

// decode decodes what encode encoded into what value points to, which must be zero.
func decode(rec []byte, value any) error {
	if len(rec) == 0 || rec[0] != recordVersion || decoding.Unmarshal(rec[1:], value) != nil {
		return errRecord
	}
	return nil
}
