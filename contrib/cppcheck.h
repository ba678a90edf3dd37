/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What cppcheck has to know of UCX's macros, whose headers are too much for
 * it. contrib/check gives it this file in front of each source.
 */
#define ucs_list_for_each(_elem, _head, _member) \
    for (_elem = ucs_first(_head); _elem != 0; _elem = ucs_next(_elem))

#define ucs_list_for_each_safe(_elem, _telem, _head, _member) \
    for (_elem = ucs_first(_head), _telem = ucs_next(_elem); _elem != 0; \
         _elem = _telem, _telem = ucs_next(_elem))

#define ucs_queue_for_each_safe(_elem, _iter, _queue, _member) \
    for (_elem = ucs_first(_queue), _iter = ucs_next(_elem); _elem != 0; \
         _elem = ucs_next(_iter))

#define kh_foreach_value(_hash, _value, _code) \
    while (kh_more(_hash, &(_value))) \
        _code
