package store

import (
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// recordVersion is the first byte of every encoded value. It changes with formatVersion.
const recordVersion = 2

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

// appendCBOR appends the encoded values to dst.
func appendCBOR(dst []byte, values ...any) []byte {
	for _, v := range values {
		b, err := encoding.Marshal(v)
		if err != nil {
			panic("store: a noun that cannot be encoded: " + err.Error()) // impossible: all fields have plain types
		}
		dst = append(dst, b...)
	}
	return dst
}

// decodeCBOR decodes the first values in b into what the pointers point to, which must be zero, and returns the rest.
func decodeCBOR(b []byte, values ...any) (rest []byte, err error) {
	for _, v := range values {
		if b, err = decoding.UnmarshalFirst(b, v); err != nil {
			return nil, errRecord
		}
	}
	return b, nil
}

// encode encodes a value without times.
func encode(value any) []byte { return appendCBOR([]byte{recordVersion}, value) }

// decode decodes what encode encoded.
func decode(rec []byte, value any) error {
	if len(rec) == 0 || rec[0] != recordVersion {
		return errRecord
	}
	return whole(decodeCBOR(rec[1:], value))
}

// whole reports bytes that are left over.
func whole(rest []byte, err error) error {
	if err == nil && len(rest) > 0 {
		err = errRecord
	}
	return err
}
