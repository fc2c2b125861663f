/* Of Mesa's header of this name the validators need nothing. */
