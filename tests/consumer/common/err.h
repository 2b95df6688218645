/* SPDX-License-Identifier: Apache-2.0 */
/* tests/consumer/common/err.h - the consumer's own, and nothing of Elver's. */
#ifndef CONSUMER_ERR_H
#define CONSUMER_ERR_H

#define CONSUMER_ERR 42

#endif
