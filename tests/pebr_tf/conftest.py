"""What a user's mistake is answered with."""

import pytest

from pebr_tf.errors import UserError


@pytest.fixture
def rejection():
    """A function that returns the sentence with which a call is rejected."""

    def rejected(function, *arguments, **keywords):
        with pytest.raises(UserError) as caught:
            function(*arguments, **keywords)
        return str(caught.value)

    return rejected
